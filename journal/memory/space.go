package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-run/parley/journal"
)

// space is one space of the directory: its rows by key, and in order.
type space struct {
	byKey  map[string]*journal.Row
	sorted []*journal.Row // by (Sort, Key), bytewise
}

func newSpace() *space {
	return &space{byKey: make(map[string]*journal.Row)}
}

// put upserts or deletes one row.
func (s *space) put(row journal.Row) {
	if old := s.byKey[row.Key]; old != nil {
		i, _ := s.find(old.Sort, old.Key)
		s.sorted = slices.Delete(s.sorted, i, i+1)
		delete(s.byKey, row.Key)
	}
	if row.Delete {
		return
	}
	row.Data = cloneData(row.Data)
	i, _ := s.find(row.Sort, row.Key)
	s.sorted = slices.Insert(s.sorted, i, &row)
	s.byKey[row.Key] = &row
}

// find returns where the row with this place is, or would be.
func (s *space) find(sort, key string) (int, bool) {
	return slices.BinarySearchFunc(s.sorted, key, func(row *journal.Row, _ string) int {
		return cmp.Or(strings.Compare(row.Sort, sort), strings.Compare(row.Key, key))
	})
}

// list is [journal.Store.List] within the space.
func (s *space) list(prefix, after string, limit int, dir journal.Direction) []journal.Row {
	first, _ := s.find(prefix, "")
	last := first + sortedPrefix(s.sorted[first:], prefix)
	if after != "" {
		sort, key, _ := strings.Cut(after, "\x00")
		at, found := s.find(sort, key)
		if dir == journal.Backward {
			last = min(last, at)
		} else if found {
			first = max(first, at+1)
		} else {
			first = max(first, at)
		}
	}
	var rows []journal.Row
	for n := range max(0, min(limit, last-first)) {
		i := first + n
		if dir == journal.Backward {
			i = last - 1 - n
		}
		row := *s.sorted[i]
		row.Data = cloneData(row.Data)
		rows = append(rows, row)
	}
	return rows
}

// sortedPrefix returns how many of the rows, of which the first is not below
// the prefix, begin with it.
func sortedPrefix(rows []*journal.Row, prefix string) int {
	n, _ := slices.BinarySearchFunc(rows, prefix, func(row *journal.Row, prefix string) int {
		if strings.HasPrefix(row.Sort, prefix) {
			return -1
		}
		return 1
	})
	return n
}
