package conversation

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// MaxParticipants is how many people take part in a conversation at most, its
// owner among them (C-33.3).
const MaxParticipants = 100

// Participant is somebody who takes part in a shared conversation.
type Participant struct {
	Identity identity.Identity `json:"identity"`
	Since    time.Time         `json:"since"`
	Owner    bool              `json:"owner,omitzero"` // always takes part (C-33.2)
}

// Directory knows who takes part in which conversation, beside its owner, who
// always does. [LogParticipants] is the standard one. It is asked anew for every
// request (C-33.6), and where it cannot answer the request is refused (C-33.11).
type Directory interface {
	// Roster lists who takes part, in the order of their coming. A conversation
	// that it knows nothing of has nobody.
	Roster(ctx context.Context, conversation string) ([]Participant, error)

	// Update makes one change. It gives decide the roster as it stands, as often
	// as that changes meanwhile; nil changes nothing. An error of decide's is
	// returned as it is.
	Update(ctx context.Context, conversation string, decide func([]Participant) (*Change, error)) error
}

// Change is what becomes of a roster, and who made it (C-33.5).
type Change struct {
	Who    identity.Identity
	Added  bool // false: removed
	By     identity.Identity
	Roster []Participant // afterwards
	Rows   []journal.Row // for the journal's directory, beside the change
}

// KindParticipantChanged is the kind of the events of a side stream.
const KindParticipantChanged = "PARTICIPANT_CHANGED"

// ParticipantsPrefix begins the names of side streams; reserve it with the
// runtime (K13).
const ParticipantsPrefix = "conversation-participants:"

// participantChanged is an event of a side stream. It has the whole roster, which
// is small, so that the newest event is all that a request has to read, however
// often people have come and gone.
type participantChanged struct {
	Who    identity.Identity `json:"who"`
	Added  bool              `json:"added"`
	By     identity.Identity `json:"by"`
	Roster []Participant     `json:"roster"`
}

// LogParticipants returns the standard directory: an append-only side stream of
// each conversation, with one event for each change (C-33.5). It is not the
// conversation's own log.
func LogParticipants(store journal.Store) Directory { return logDirectory{store} }

type logDirectory struct{ store journal.Store }

// Roster reads the newest change.
func (d logDirectory) Roster(ctx context.Context, conversation string) ([]Participant, error) {
	roster, _, err := d.read(ctx, conversation)
	return roster, err
}

// Update appends the change behind the event that decide has seen, or asks again.
func (d logDirectory) Update(ctx context.Context, conversation string, decide func([]Participant) (*Change, error)) error {
	for {
		roster, next, err := d.read(ctx, conversation)
		if err != nil {
			return err
		}
		change, err := decide(roster)
		if err != nil || change == nil {
			return err
		}
		data, err := json.Marshal(participantChanged{change.Who, change.Added, change.By, change.Roster})
		if err != nil {
			return fmt.Errorf("encode a change of the participants: %w", err)
		}
		err = d.store.Append(ctx, journal.Append{
			Stream: ParticipantsPrefix + conversation, Expect: next, Rows: change.Rows,
			Events: []journal.Event{{Kind: KindParticipantChanged, Time: now(), Data: data}},
		})
		if !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
}

// read returns the roster of the newest change, and where the next one goes.
// Events of another kind are passed over (C-33.8).
func (d logDirectory) read(ctx context.Context, conversation string) (roster []Participant, next journal.Seq, err error) {
	from, limit := journal.Seq(math.MaxInt64), 1
	for {
		events, err := d.store.ReadRange(ctx, ParticipantsPrefix+conversation, from, limit, journal.Backward)
		if err != nil {
			return nil, 0, fmt.Errorf("read the participants: %w", err)
		}
		for _, event := range events {
			next = max(next, event.Seq+1)
			if event.Kind != KindParticipantChanged {
				continue
			}
			var changed participantChanged
			if err := json.Unmarshal(event.Data, &changed); err != nil {
				return nil, 0, errors.New("read the participants: an event is damaged")
			}
			return changed.Roster, next, nil
		}
		if len(events) < limit {
			return nil, next, nil
		}
		from, limit = events[len(events)-1].Seq-1, blockEvents
	}
}

// rosterHas reports whether somebody is on a roster: the same identity in all of
// its fields.
func rosterHas(roster []Participant, who identity.Identity) bool {
	return slices.ContainsFunc(roster, func(p Participant) bool { return p.Identity == who })
}
