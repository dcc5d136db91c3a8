package conversation

import (
	"encoding/json/jsontext"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
)

const (
	// DefaultMaxEnvelopeAge is how long an envelope may wait (C-13.6).
	DefaultMaxEnvelopeAge = 7 * 24 * time.Hour
	// maxClockSkew is how far ahead of the clock an envelope may be issued.
	maxClockSkew = 60 * time.Second
)

// verdict is the recorded outcome of an admission. A replay takes it from the
// log, so that neither the clock, nor a key dropped since, nor a limit changed
// since alters it (C-13.5).
type verdict struct {
	Reason Reason    `json:"reason,omitzero"` // of the rejection, "" where there is none
	At     time.Time `json:"at"`              // the clock, read once
	Proven bool      `json:"proven,omitzero"` // the signature proves the asker, for this conversation
}

// admission is what an envelope is judged by.
type admission struct {
	keys         Keys
	conversation string
	owner        *identity.Identity // nil: ownerless
	shared       bool               // who may speak is judged later (C-39.3)
	genuine      bool               // of a shared one: the service started it (C-34.3)
	maxTurnChars int
	maxAge       time.Duration
	replay       *replaySet
}

// judge holds an envelope against the checks up to freshness, in the order of
// C-13.4: the first that applies is the verdict, and no later one runs.
func (a admission) judge(payload jsontext.Value, now time.Time) verdict {
	e, object := split(payload)
	signed := object && a.keys.verify(e)
	b, shaped := e.read()
	v := verdict{At: now, Proven: signed && b.ConversationID == a.conversation}
	age := now.Sub(time.UnixMilli(b.IssuedAt))
	switch {
	case !object:
		v.Reason = ReasonMalformed
	case !signed:
		v.Reason = ReasonUnauthenticated
	case !shaped || utf8.RuneCountInString(b.Text) > a.maxTurnChars:
		v.Reason = ReasonMalformed
	case b.ConversationID != a.conversation:
		v.Reason = ReasonUnauthenticated
	case !a.mayAsk(b):
		v.Reason = ReasonUnauthenticated
	case a.replay.has(b.ID):
		v.Reason = ReasonReplayed
	case b.IssuedAt <= a.replay.Floor || age > a.maxAge || age < -maxClockSkew:
		v.Reason = ReasonStale
	}
	return v
}

// mayAsk reports whether the envelope could be somebody's who may speak here: the
// owner's or the house's own, and in a shared conversation anybody's (C-45.3).
func (a admission) mayAsk(b body) bool {
	if a.shared {
		return a.genuine && b.speaker() != nil
	}
	return b.Kind == KindNotice && b.For == nil || sameAsker(b.Asker, a.owner) && b.Kind != KindNotice
}

// sameAsker reports whether two identities are equal; nobody equals nobody.
func sameAsker(a, b *identity.Identity) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return *a == *b
}
