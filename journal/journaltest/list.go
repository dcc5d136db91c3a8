package journaltest

import (
	"encoding/json/jsontext"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

var listCases = []contractCase{
	{"order, prefix and pages", listPages},
	{"upsert and delete", upsert},
	{"rows of one batch in order", rowsInOrder},
}

func wantRows(t *testing.T, s journal.Store, space, prefix, after string, limit int, dir journal.Direction, want ...journal.Row) {
	t.Helper()
	got, err := s.List(t.Context(), space, prefix, after, limit, dir)
	if err != nil {
		t.Fatalf("List(%q, %q, %q, %d, %d): %v", space, prefix, after, limit, dir, err)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List(%q, %q, %q, %d, %d) (-want +got):\n%s", space, prefix, after, limit, dir, diff)
	}
}

// listPages: rows come in the bytewise order of (Sort, Key), from either end,
// within a prefix, strictly past a position, whether a row is there or not.
func listPages(t *testing.T, s journal.Store) {
	places := [][2]string{ // sort, key, in order
		{"", "z"},
		{"A", "k1"},
		{"a", "k3"},
		{"a", "k4"},
		{"a", "k5"},
		{"a\x01", "k0"},
		{"a%", "k6"},
		{"a_b", "k7"},
		{"ab", "k2"},
		{"aé", "é"},
		{"a\U0010ffff", "k8"},
		{"b", "a"},
		{"b", "aa"},
		{"é", "k9"},
	}
	var all []journal.Row
	for i, place := range places {
		all = append(all, journal.Row{Space: "x", Key: place[1], Sort: place[0], Data: jsontext.Value(fmt.Sprint(i))})
	}
	for i := range all { // written in another order than they sort
		row := all[(i*5+3)%len(all)]
		must(t, s, journal.Append{Stream: "s", Expect: journal.AtEnd, Rows: []journal.Row{row}})
	}
	must(t, s, journal.Append{Stream: "s", Expect: journal.AtEnd, Rows: []journal.Row{
		{Space: "w", Key: "k", Sort: "a"}, {Space: "xx", Key: "k", Sort: "a"}, {Space: "", Key: "k", Sort: "a"},
	}})
	at := func(sort, key string) string { return journal.Row{Sort: sort, Key: key}.Position() }
	for _, test := range []struct {
		prefix, after string
		limit         int
		want          []journal.Row // in rising order; Backward gives the same, reversed and cut at the other end
		wantBackward  []journal.Row
	}{
		{"", "", 100, all, all},
		{"", "", 3, all[:3], all[11:]},
		{"", "", 0, nil, nil},
		{"", "", -1, nil, nil},
		{"a", "", 100, all[2:11], all[2:11]},
		{"a", "", 2, all[2:4], all[9:11]},
		{"ab", "", 100, all[8:9], all[8:9]},
		{"a%", "", 100, all[6:7], all[6:7]},
		{"ac", "", 100, nil, nil},
		{"zz", "", 100, nil, nil},
		{"", at("a", "k4"), 100, all[4:], all[:3]},
		{"", at("a", "k4"), 2, all[4:6], all[1:3]},
		{"", at("a", "k44"), 100, all[4:], all[:4]},
		{"a", at("a", "k4"), 100, all[4:11], all[2:3]},
		{"a", at("a", "k4"), 1, all[4:5], all[2:3]},
		{"a", at("", "z"), 100, all[2:11], nil},
		{"a", at("b", "a"), 100, nil, all[2:11]},
		{"b", at("b", "a"), 100, all[12:13], nil},
		{"", at("", "z"), 100, all[1:], nil},
		{"", at("é", "k9"), 100, nil, all[:13]},
		{"a", at("a\U0010ffff", "k8"), 100, nil, all[2:10]},
	} {
		wantRows(t, s, "x", test.prefix, test.after, test.limit, journal.Forward, test.want...)
		var backward []journal.Row
		for i := range test.wantBackward {
			backward = append(backward, test.wantBackward[len(test.wantBackward)-1-i])
		}
		wantRows(t, s, "x", test.prefix, test.after, test.limit, journal.Backward, backward...)
	}
	wantRows(t, s, "none", "", "", 10, journal.Forward)
	wantRows(t, s, "", "", "", 10, journal.Forward, journal.Row{Key: "k", Sort: "a"})
}

// upsert: a row is known by space and key; a write of it moves it, and deleting
// what is not there is no error.
func upsert(t *testing.T, s journal.Store) {
	write := func(rows ...journal.Row) {
		t.Helper()
		must(t, s, journal.Append{Stream: "s", Expect: journal.AtEnd, Rows: rows})
	}
	a := journal.Row{Space: "x", Key: "a", Sort: "1", Data: jsontext.Value(`{"n": 1}`)}
	b := journal.Row{Space: "x", Key: "b", Sort: "2"}
	write(a, b)
	wantRows(t, s, "x", "", "", 10, journal.Forward, a, b)
	a.Sort, a.Data = "3", jsontext.Value(` 2`)
	write(a)
	wantRows(t, s, "x", "", "", 10, journal.Forward, b, a)
	wantRows(t, s, "x", "1", "", 10, journal.Forward)
	a.Data = nil
	write(a)
	wantRows(t, s, "x", "", "", 10, journal.Forward, b, a)
	write(journal.Row{Space: "x", Key: "b", Delete: true}, journal.Row{Space: "x", Key: "none", Delete: true}, journal.Row{Space: "none", Key: "a", Delete: true})
	wantRows(t, s, "x", "", "", 10, journal.Forward, a)
	write(journal.Row{Space: "x", Key: "a", Sort: "elsewhere", Delete: true})
	wantRows(t, s, "x", "", "", 10, journal.Forward)
	write(b)
	wantRows(t, s, "x", "", "", 10, journal.Forward, b)
}

// rowsInOrder: the last write of a row in a batch counts.
func rowsInOrder(t *testing.T, s journal.Store) {
	one, two := journal.Row{Space: "x", Key: "a", Sort: "1"}, journal.Row{Space: "x", Key: "b", Sort: "2"}
	gone := func(row journal.Row) journal.Row {
		row.Delete = true
		return row
	}
	last := one
	last.Sort = "9"
	must(t, s, journal.Append{Stream: "s", Rows: []journal.Row{one, two, gone(two), gone(one)}}, journal.Append{Stream: "t", Rows: []journal.Row{one, last}})
	wantRows(t, s, "x", "", "", 10, journal.Forward, last)
}
