package journaltest

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
)

var modelCases = []contractCase{
	{"same answers as the memory store", sameAnswers},
}

// sameAnswers makes random batches and reads on the store and on a memory store
// at once: they accept the same, refuse the same and read the same (C-3.9).
func sameAnswers(t *testing.T, s journal.Store) {
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++ // the store is shared by the rounds: each has names of its own
		pair := &pair{t: t, store: s, model: memory.New(), prefix: fmt.Sprintf("r%d:", round)}
		r.Repeat(map[string]func(*rapid.T){
			"append": pair.append,
			"range":  pair.readRange,
			"head":   pair.headOf,
			"list":   pair.list,
		})
	})
}

// pair is a store and its model, which are asked the same.
type pair struct {
	t      *testing.T
	store  journal.Store
	model  *memory.Store
	prefix string
}

var (
	streamNames = rapid.SampledFrom([]string{"a", "b", "c"})
	spaceNames  = rapid.SampledFrom([]string{"x", "y"})
	rowKeys     = rapid.SampledFrom([]string{"k", "kk", "l", "é"})
	rowSorts    = rapid.SampledFrom([]string{"", "1", "10", "1%", "2", "é"})
	sequences   = rapid.Int64Range(-1, 8)
	limits      = rapid.IntRange(-1, 6)
	directions  = rapid.SampledFrom([]journal.Direction{journal.Forward, journal.Backward})
	documents   = rapid.SampledFrom([]string{"", "1", ` {"a" : "ü"} `, `"\u0000"`})
)

func (p *pair) append(r *rapid.T) {
	var batch []journal.Append
	for _, stream := range rapid.SliceOfNDistinct(streamNames, 0, 3, rapid.ID[string]).Draw(r, "streams") {
		part := journal.Append{Stream: p.prefix + stream, Expect: journal.AtEnd}
		if rapid.Bool().Draw(r, "fenced") {
			next, _, err := p.model.HeadOf(p.t.Context(), part.Stream)
			if err != nil {
				r.Fatalf("HeadOf of the model: %v", err)
			}
			part.Expect = max(0, next+journal.Seq(rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(r, "off by")))
		}
		part.Events = rapid.SliceOfN(rapid.Custom(drawEvent), 0, 3).Draw(r, "events")
		for i := range rapid.IntRange(0, 2).Draw(r, "rows") {
			part.Rows = append(part.Rows, p.drawRow(r, i))
		}
		batch = append(batch, part)
	}
	got, want := p.store.Append(p.t.Context(), batch...), p.model.Append(p.t.Context(), batch...)
	for _, sentinel := range []error{journal.ErrConflict, nil} {
		if errors.Is(got, sentinel) != errors.Is(want, sentinel) {
			r.Fatalf("Append(%+v) = %v, want %v", batch, got, want)
		}
	}
}

func drawEvent(r *rapid.T) journal.Event {
	return journal.Event{
		Kind: rapid.SampledFrom([]string{"A", "B"}).Draw(r, "kind"),
		ID:   rapid.SampledFrom([]string{"", "i", "j"}).Draw(r, "id"),
		Time: time.UnixMicro(rapid.Int64Range(-5000, 5000).Draw(r, "time")),
		Data: jsontext.Value(documents.Draw(r, "data")),
	}
}

func (p *pair) drawRow(r *rapid.T, i int) journal.Row {
	label := func(what string) string { return fmt.Sprint(what, i) }
	return journal.Row{
		Space:  p.prefix + spaceNames.Draw(r, label("space")),
		Key:    rowKeys.Draw(r, label("key")),
		Sort:   rowSorts.Draw(r, label("sort")),
		Data:   jsontext.Value(documents.Draw(r, label("data"))),
		Delete: rapid.IntRange(0, 3).Draw(r, label("delete")) == 0,
	}
}

func (p *pair) readRange(r *rapid.T) {
	stream, from := p.prefix+streamNames.Draw(r, "stream"), journal.Seq(sequences.Draw(r, "from"))
	limit, dir := limits.Draw(r, "limit"), directions.Draw(r, "direction")
	got, err := p.store.ReadRange(p.t.Context(), stream, from, limit, dir)
	want, wantErr := p.model.ReadRange(p.t.Context(), stream, from, limit, dir)
	same(r, fmt.Sprintf("ReadRange(%q, %d, %d, %d)", stream, from, limit, dir), got, want, err, wantErr)
}

func (p *pair) headOf(r *rapid.T) {
	stream := p.prefix + streamNames.Draw(r, "stream")
	got, ok, err := p.store.HeadOf(p.t.Context(), stream)
	want, wantOK, wantErr := p.model.HeadOf(p.t.Context(), stream)
	same(r, fmt.Sprintf("HeadOf(%q)", stream), got, want, err, wantErr)
	same(r, fmt.Sprintf("whether %q exists", stream), ok, wantOK, nil, nil)
}

func (p *pair) list(r *rapid.T) {
	space, prefix := p.prefix+spaceNames.Draw(r, "space"), rowSorts.Draw(r, "prefix")
	after, limit, dir := "", limits.Draw(r, "limit"), directions.Draw(r, "direction")
	if rapid.Bool().Draw(r, "has after") {
		after = journal.Row{Sort: rowSorts.Draw(r, "after sort"), Key: rowKeys.Draw(r, "after key")}.Position()
	}
	got, err := p.store.List(p.t.Context(), space, prefix, after, limit, dir)
	want, wantErr := p.model.List(p.t.Context(), space, prefix, after, limit, dir)
	same(r, fmt.Sprintf("List(%q, %q, %q, %d, %d)", space, prefix, after, limit, dir), got, want, err, wantErr)
}

func same(r *rapid.T, call string, got, want any, err, wantErr error) {
	if err != nil || wantErr != nil {
		r.Fatalf("%s: error %v, the model's %v", call, err, wantErr)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("%s (-model +store):\n%s", call, diff)
	}
}
