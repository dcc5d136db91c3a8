// Package journal is the log that everything durable in Parley stands on.
//
// A [Store] holds streams; a stream is an append-only list of events numbered
// 0, 1, 2, … without gaps. Open one with journal/sqlite (durable, one file) or
// journal/memory (for tests and examples), and write with [Store.Append].
//
// A store promises: an append is all or nothing, over every stream and row
// that it names; when Append returns nil it is durable; an append that names a
// wrong next sequence writes nothing and returns [ErrConflict]. That
// expectation is the fence which keeps a replaced or paused worker from
// writing into a log that has moved on. Package journaltest is the contract in
// executable form.
package journal

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"time"
)

// Seq is the position of an event in its stream, counted from 0.
type Seq int64

// AtEnd as the expectation of an [Append] means "wherever the stream ends". It
// is for streams with many writers and no fence, such as inboxes.
const AtEnd Seq = -1

// MaxEventBytes is the largest Data of one event, together with its ID: 1 MiB
// and a little room for the fields around a payload of 1 MiB. It bounds the Data
// of a row, too.
const MaxEventBytes = 1<<20 + 64<<10

// Event is one entry of a stream.
type Event struct {
	Seq  Seq            // set by the store; ignored by Append
	Kind string         // what happened, such as "STARTED"; never empty
	ID   string         // the id of the fact, may be empty; the store keeps no index of it
	Time time.Time      // UTC, whole milliseconds; given by the writer. Order is Seq, never Time.
	Data jsontext.Value // one JSON value, returned byte for byte; nil where there is none
}

// Append is one stream's part of an atomic write. Without events it is a
// condition: the batch is written only if the stream ends at Expect.
type Append struct {
	Stream string
	Expect Seq // the next sequence of the stream (0 where it does not exist), or AtEnd
	Events []Event
	Rows   []Row // directory rows to upsert in the same write; see Row.Delete
}

// Row is one entry of the directory: a small index beside the streams that can
// be rebuilt from them. Space and Key identify it. Rows of a space are listed
// in the order of (Sort, Key), bytewise.
type Row struct {
	Space  string
	Key    string // never empty
	Sort   string
	Data   jsontext.Value
	Delete bool // only in Append: remove the row; no error if there is none
}

// Position is the place of the row in its space, to be handed to [Store.List]
// as after.
func (r Row) Position() string { return r.Sort + "\x00" + r.Key }

// Direction says which way a read goes.
type Direction int

const (
	Forward  Direction = iota // oldest, or smallest, first
	Backward                  // newest, or largest, first
)

// Store is the contract of a journal. All methods may be called from any
// number of goroutines.
type Store interface {
	// Append writes the whole batch or nothing, and is durable when it returns
	// nil. A batch names each stream at most once, and passes [Check]. Once the
	// write is queued the cancellation of ctx is ignored, so that the outcome is
	// always known. The batch belongs to the caller again when it returns.
	//
	// Errors: [ErrConflict] when a stream does not end where its Append
	// expects; [ErrTooLarge] when an event exceeds [MaxEventBytes] or a name
	// [MaxNameBytes]; [ErrPoisoned] when this or an earlier write could not be
	// made durable; [ErrClosed]; that of a ctx that is done before the write is
	// queued.
	Append(ctx context.Context, batch ...Append) error

	// ReadRange returns up to limit events: Forward those with Seq >= from in
	// rising order, Backward those with Seq <= from in falling order (from
	// math.MaxInt64 is from the end). A stream that does not exist, a range
	// beyond its end, or a limit that is not positive gives none. The caller
	// owns the result. The events of one append are seen all at once.
	ReadRange(ctx context.Context, stream string, from Seq, limit int, dir Direction) ([]Event, error)

	// HeadOf returns the next sequence of the stream, and false if it does not
	// exist. It is one point read.
	HeadOf(ctx context.Context, stream string) (next Seq, ok bool, err error)

	// Subscribe returns a channel that receives a value after appends with
	// events to the stream. Notifications merge: one value may stand for many
	// appends, so read on from your last position. The subscription is released,
	// with all that it holds, and the channel closed, when ctx is done. It
	// reaches at least the appends of this process; no correctness may rest on
	// it.
	Subscribe(ctx context.Context, stream string) (<-chan struct{}, error)

	// List returns up to limit rows of the space whose Sort begins with prefix,
	// ordered by (Sort, Key), strictly past the position after ("" for the
	// first page, from either end).
	List(ctx context.Context, space, prefix, after string, limit int, dir Direction) ([]Row, error)

	// Close waits for queued appends and releases the store. Calls after it,
	// Close included, return [ErrClosed]; live subscriptions are closed.
	Close() error
}

var (
	// ErrConflict says that a stream does not end where the writer expected;
	// nothing was written.
	ErrConflict = errors.New("journal: stream has moved on")

	// ErrPoisoned says that this write or an earlier one could not be made
	// durable. The store refuses every further write until it is opened again;
	// reads go on. Whether the write that failed is there then is unknown, but
	// it is there whole or not at all.
	ErrPoisoned = errors.New("journal: a write could not be made durable, the store takes no more until it is opened again")

	// ErrTooLarge says that an event or a row exceeds MaxEventBytes, or a name
	// MaxNameBytes; nothing was written.
	ErrTooLarge = errors.New("journal: event too large")

	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("journal: store is closed")
)
