package server

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// placeOf is where a value stands in a configuration file that was read: the first
// key that leads to it, else where the innermost table begins that would have it.
// In a list of tables each is named by its place in the list, from "0" on.
func placeOf(data []byte, wanted ...string) (row, column int) {
	var parser unstable.Parser
	parser.Reset(data)
	var within []string
	tables, best := map[string]int{}, 0 // how many tables each list has so far
	row, column = 1, 1
	for parser.NextExpression() {
		node := parser.Expression()
		var path []string
		var first *unstable.Node
		for keys := node.Key(); keys.Next(); {
			path = append(path, string(keys.Node().Data))
			if first == nil {
				first = keys.Node()
			}
		}
		switch node.Kind {
		case unstable.ArrayTable:
			tables[strings.Join(path, "\x00")]++
			within = numbered(path, tables)
			path = within
		case unstable.Table:
			within = numbered(path, tables)
			path = within
		case unstable.KeyValue:
			path = slices.Concat(within, path)
		default:
			continue
		}
		n := 0
		for n < min(len(path), len(wanted)) && path[n] == wanted[n] {
			n++
		}
		if n > best && n == min(len(path), len(wanted)) {
			best = n
			row, column = parser.Shape(first.Raw).Start.Line, parser.Shape(first.Raw).Start.Column
		}
	}
	return row, column
}

// numbered puts behind each name of a list the place of its newest table.
func numbered(path []string, tables map[string]int) (all []string) {
	for i, name := range path {
		all = append(all, name)
		if n := tables[strings.Join(path[:i+1], "\x00")]; n > 0 {
			all = append(all, strconv.Itoa(n-1))
		}
	}
	return all
}
