package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/identity"
)

// Resource is the key of one exclusive part of the body (L-2.1).
type Resource string

// The parts that an agent may have. Which it has is for [Config.Bodies] to say;
// a key without an adapter is unknown (L-2.7).
const (
	Voice        Resource = "voice"
	Browser      Resource = "browser"
	Play         Resource = "play"
	DiscordMouth Resource = "discord_mouth" // its lease covers one operation, through the receipt (L-10)
	Computer     Resource = "computer"      // the sweep leaves it alone (L-16.7)
)

// State is one of the three states of a resource (L-6.2).
type State string

const (
	Free             State = "free"
	Held             State = "held"
	RecoveryRequired State = "recovery_required"
)

// Reason says why a resource is in [RecoveryRequired].
type Reason string

const (
	Expired   Reason = "expired"         // the deadline passed (L-8.3)
	Restarted Reason = "service_restart" // the service stopped in between (L-30.1)
	Uncertain Reason = "uncertain"       // an operation's outcome is not known
	Damaged   Reason = "damaged"         // the record cannot be read (L-7.5)
)

// SeatKind says who drives a conversation.
type SeatKind string

const (
	Service SeatKind = "service" // the service's own turn loop: it knows when a turn has ended
	Native  SeatKind = "native"  // another program: only a person knows when it has ended (L-16.3)
)

// Seat is where a conversation runs: a turn of the service's, or a driver from
// outside (L-3.6).
type Seat struct {
	Kind SeatKind `json:"kind,omitzero"`
	ID   string   `json:"id,omitzero"` // of the turn or the driver
}

// Caller is on whose behalf something is asked, as the host resolved it from an
// authenticated call. It is a value: what was captured when a call was admitted
// travels with the call (L-3.3).
type Caller struct {
	Conversation string            `json:"conversation,omitzero"` // its stable id; never a name that a model gave (L-3.2)
	Identity     identity.Identity `json:"identity,omitzero"`
	Seat         Seat              `json:"seat,omitzero"`
}

// maxIDBytes bounds the ids that a host gives; those of conversations have at
// most as many.
const maxIDBytes = 512

// validate refuses a caller without a conversation: no default stands in for
// it (L-3.5). The error repeats nothing.
func (c Caller) validate() error {
	switch {
	case c.Conversation == "":
		return fmt.Errorf("%w: no conversation asks", ErrDenied)
	case len(c.Conversation) > maxIDBytes || !utf8.ValidString(c.Conversation):
		return fmt.Errorf("%w: the id of a conversation has at most %d bytes of UTF-8", ErrDenied, maxIDBytes)
	case len(c.Seat.ID) > maxIDBytes || !utf8.ValidString(c.Seat.ID):
		return fmt.Errorf("%w: the id of a seat has at most %d bytes of UTF-8", ErrDenied, maxIDBytes)
	case c.Seat.Kind != "" && c.Seat.Kind != Service && c.Seat.Kind != Native:
		return fmt.Errorf("%w: a seat is the service's or a native driver's", ErrDenied)
	}
	if err := c.Identity.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return nil
}

// Claim is what a holder gets. The token is nowhere else (L-5.5, L-7.6).
type Claim struct {
	Resource    Resource
	Incarnation body.Incarnation
	Token       identity.Secret
	Deadline    time.Time
}

// digest is the SHA-256 of a token; the zero digest is that of no token.
type digest [sha256.Size]byte

func digestOf(token identity.Secret) digest {
	if token.IsZero() {
		return digest{}
	}
	return sha256.Sum256([]byte(token.Reveal()))
}

// MarshalJSON writes the digest in hexadecimal.
func (d digest) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(d[:])) }

// UnmarshalJSON reads a digest of the exact length.
func (d *digest) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return errors.New("not a digest")
	}
	copy(d[:], raw)
	return nil
}

// instant is a time on two clocks: the wall's, which a person may set back, and
// one that only goes on, which stops while a machine sleeps (L-8.7).
type instant struct {
	wall time.Time
	mono time.Duration
}

func (i instant) add(d time.Duration) instant { return instant{i.wall.Add(d), i.mono + d} }

// passed reports whether either clock has reached the deadline.
func (i instant) passed(deadline instant) bool {
	return !i.wall.Before(deadline.wall) || i.mono >= deadline.mono
}
