package conversation

import (
	"context"

	"github.com/parley-run/parley/identity"
)

// view is what somebody is shown of a shared conversation (C-37). It lasts for one
// call: who is cleared for what is asked anew in the next (C-37.11). A nil view
// shows everything.
type view struct {
	who       identity.Identity
	clearance *clearance
}

// view is the caller's own.
func (a access) view() *view {
	if !a.shared {
		return nil
	}
	return &view{who: a.caller.Identity, clearance: a.client.shared.clearanceOf(a.caller.Identity)}
}

// show is a record as the viewer sees it. Nothing of one that they are not cleared
// for is left but that there is one (C-37.3), and of a rejected message of somebody
// else's the text is not shown, since nobody knows what it has touched (C-37.6).
// What somebody has asked, and was answered, is never hidden from them (C-37.4).
func (v *view) show(ctx context.Context, r Record) Record {
	if v == nil || r.Asker != nil && *r.Asker == v.who {
		return r
	}
	r.TurnExecutionID = "" // C-37.7
	switch {
	case r.Status == StatusRejected:
		r.Text = ""
	case !v.clearance.covers(ctx, r.Classes):
		return Record{
			Turn: r.Turn, Ord: r.Ord, Role: r.Role, Status: StatusRestricted,
			Asker: r.Asker, Time: r.Time, Cursor: r.Cursor,
		}
	}
	return r
}
