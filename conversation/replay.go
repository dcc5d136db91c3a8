package conversation

import "slices"

// maxSeen is the size of the replay set (C-13.7).
const maxSeen = 1024

// Seen is an entry of the replay set.
type Seen struct {
	Key      string `json:"key"` // the envelope's id
	IssuedAt int64  `json:"iat"`
	Turn     bool   `json:"turn,omitzero"` // it began a turn (C-14.9)
}

// replaySet remembers the ids that entered it last, oldest first, and the
// newest time of issue of an id that it has forgotten. An envelope issued then
// or before is refused, so that a forgotten id stays dead (C-13.8).
type replaySet struct {
	Seen  []Seen `json:"ids"`
	Floor int64  `json:"floor,omitzero"` // milliseconds; it only rises
}

func (r *replaySet) has(key string) bool {
	return slices.ContainsFunc(r.Seen, func(s Seen) bool { return s.Key == key })
}

// maxTurnKeys is how many of the turns begun last are known by their keys
// (C-14.9).
const maxTurnKeys = 256

// begunTurn reports whether one of those turns was begun under the key.
func (r *replaySet) begunTurn(key string) bool {
	turns := 0
	for _, seen := range slices.Backward(r.Seen) {
		if !seen.Turn {
			continue
		}
		if seen.Key == key {
			return true
		}
		if turns++; turns == maxTurnKeys {
			break
		}
	}
	return false
}

func (r *replaySet) enter(s Seen) {
	r.Seen = append(r.Seen, s)
	if len(r.Seen) > maxSeen {
		r.Floor = max(r.Floor, r.Seen[0].IssuedAt)
		r.Seen = slices.Delete(r.Seen, 0, 1)
	}
}

// withdraw takes back that the id which entered last began a turn.
func (r *replaySet) withdraw() { r.Seen[len(r.Seen)-1].Turn = false }
