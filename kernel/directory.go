package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// The directory (K10) is rows that ride beside events: who owns which
// execution, whose child it is, and which executions have work waiting. It can
// be rebuilt from the logs.
const (
	spaceWork  = "work"   // key: chain id; set by Start and Send, cleared when nothing waits
	spaceOwner = "owner:" // + hash of the identity key, see ownerSpace; key: chain id; sort: flow / time of last activity
	spaceChild = "child:" // + parent's chain id; key: chain id
)

// Listed is one execution in the directory.
type Listed struct {
	ID       string
	State    State
	Activity time.Time // of its start, or of the last message to it
	Position string    // to go on after it, see Runtime.Owned
}

// ownerData is the data of an owner row.
type ownerData struct {
	State  State  `json:"state"`
	Parent string `json:"parent,omitzero"`
}

const activityLayout = "20060102T150405.000"

// ownerSpace is the space of an identity's executions. The identity's key is
// hashed, since it may be longer than a name in a journal.
func ownerSpace(owner identity.Identity) string {
	sum := sha256.Sum256([]byte(owner.Key()))
	return spaceOwner + hex.EncodeToString(sum[:])
}

// ownerRow says that the principal owns the chain. A child's row lists under
// no flow, so that it is not taken for an execution that its owner started.
func ownerRow(principal *identity.Identity, chain, parent, flow string, state State, activity time.Time) []journal.Row {
	if principal == nil {
		return nil
	}
	if parent != "" {
		flow = "child"
	} else {
		flow = "flow:" + flow
	}
	return []journal.Row{{
		Space: ownerSpace(*principal), Key: chain,
		Sort: flow + "/" + activity.UTC().Format(activityLayout),
		Data: mustEncode(ownerData{State: state, Parent: parent}),
	}}
}

// ListRow is the row by which an execution stands in the list of somebody who did
// not start it, beside the executions of the flow that they did, see
// [Runtime.Owned]. It is written with the activity that it tells of.
func ListRow(who identity.Identity, flow, chain string, activity time.Time) journal.Row {
	return ownerRow(&who, chain, "", flow, Running, activity)[0]
}

func workRow(chain string) journal.Row { return journal.Row{Space: spaceWork, Key: chain} }

// startRows ride beside event 0 of a new execution.
func startRows(started Started, chain string, at time.Time) []journal.Row {
	rows := append(ownerRow(started.Principal, chain, started.Parent, started.Flow, Running, at), workRow(chain))
	if started.Parent != "" {
		rows = append(rows, journal.Row{Space: spaceChild + started.Parent, Key: chain})
	}
	return rows
}

// endRows ride beside the last event of an execution.
func endRows(principal *identity.Identity, chain, parent, flow string, state State) []journal.Row {
	work := workRow(chain)
	work.Delete = true
	return append(ownerRow(principal, chain, parent, flow, state, now()), work)
}

// Owned lists the executions of a flow that the identity started, the newest
// activity first, from after a Position on ("" for the first page), and among
// them those that a [ListRow] puts into its list. Children are not listed.
func (rt *Runtime) Owned(ctx context.Context, owner identity.Identity, flow, after string, limit int) ([]Listed, error) {
	prefix := "flow:" + flow + "/"
	rows, err := rt.config.Store.List(ctx, ownerSpace(owner), prefix, after, limit, journal.Backward)
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	list := make([]Listed, 0, len(rows))
	for _, row := range rows {
		var data ownerData
		if err := json.Unmarshal(row.Data, &data); err != nil {
			return nil, fmt.Errorf("list executions: a row is damaged: %w", err)
		}
		activity, err := time.Parse(activityLayout, row.Sort[len(prefix):])
		if err != nil {
			return nil, fmt.Errorf("list executions: a row is damaged: %w", err)
		}
		list = append(list, Listed{ID: row.Key, State: data.State, Activity: activity, Position: row.Position()})
	}
	return list, nil
}

// eachRow calls visit with the key of every row of the space.
func (rt *Runtime) eachRow(ctx context.Context, space string, visit func(key string) error) error {
	after := ""
	for {
		rows, err := rt.config.Store.List(ctx, space, "", after, logBlock, journal.Forward)
		if err != nil {
			return fmt.Errorf("list %s: %w", space, err)
		}
		for _, row := range rows {
			if err := visit(row.Key); err != nil {
				return err
			}
			after = row.Position()
		}
		if len(rows) < logBlock {
			return nil
		}
	}
}

// clearWork removes the work mark of a parked execution that has read its
// inbox up to head. A message that arrived since keeps the mark: the condition
// fails.
func (rt *Runtime) clearWork(ctx context.Context, chain string, head journal.Seq) error {
	row := workRow(chain)
	row.Delete = true
	return rt.config.Store.Append(ctx, journal.Append{Stream: InboxStream(chain), Expect: head, Rows: []journal.Row{row}})
}
