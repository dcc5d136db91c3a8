package main

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/lease"
)

// L-28.5, L-28.8: the table of the leases, free, held and blocked.
func TestWriteLeases(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 12, 1, 9, minute, 0, 0, time.Local) }
	var out strings.Builder
	err := writeLeases(&out, []lease.Status{
		{Resource: lease.Browser, State: lease.Free},
		{Resource: lease.Play, State: lease.Held, Owner: "abc", Incarnation: "play.12", Since: at(0), Deadline: at(10), Operations: 2},
		{
			Resource: lease.Voice, State: lease.RecoveryRequired, Owner: "x\ny", Incarnation: "voice.3", Since: at(0), Deadline: at(1),
			Reason: lease.Uncertain, Tries: 4, NextTry: at(2),
		},
	})
	const want = `RESOURCE  STATE              CONVERSATION  INCARNATION  SINCE                UNTIL                ACTIVE  WHY        TRIES  NEXT TRY
browser   free               -             -            -                    -                    0       -          0      -
play      held               abc           play.12      2026-12-01 09:00:00  2026-12-01 09:10:00  2       -          0      -
voice     recovery_required  x y           voice.3      2026-12-01 09:00:00  2026-12-01 09:01:00  0       uncertain  4      2026-12-01 09:02:00
`
	if got := out.String(); got != want || err != nil {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
