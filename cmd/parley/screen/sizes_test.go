package screen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/cmd/parley/printable"
	"github.com/parley-run/parley/conversation"
)

// odd are texts that are hard to show: wide, joined, combining, from right to left,
// hostile, and Markdown of every kind.
var odd = []string{
	"", "hello world", "漢字漢字漢字漢字漢字", "👩‍👩‍👧‍👦 🇩🇪🇫🇷", "e" + strings.Repeat("\u0301", 50), "مرحبا بالعالم שלום", "ﷺ꧅𒐫⸻",
	"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "\x1b]52;c;aGk=\a", "\x1b[2J\x1b[H\x1b[?1049l", "\u202eevil\u2066", "\x00\x7f\u0080\u009b31m", "\xff\xfe",
	"# head\n\n- a\n- b\n  - c\n\n| a | 漢 |\n|---|---|\n| 1 | 👩‍👩‍👧‍👦 |\n", "```go\nfunc main() {}\n\tx\n```\n", "> q\n> > qq\n", "a\r\nb\rc", "\n\n\n",
	"[l](javascript:x) ![i](http://x/y.png) <b>x</b>", "\t\ttab", strings.Repeat("x", 500), strings.Repeat("- ", 50), strings.Repeat("*a", 200),
}

// C-30.13: whatever is said and pressed on a screen of whatever size, the chat does not
// panic, its rows fit, and nothing in them makes a terminal do anything but colours.
func TestAnySize(t *testing.T) {
	keys := strings.Fields("enter esc up down pgup pgdown ctrl+x ctrl+t ctrl+n ctrl+r ctrl+end ctrl+c ctrl+d ctrl+j ctrl+k ctrl+w ctrl+z a / alt+u alt+t")
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		text := func() string { return odd[random.IntN(len(odd))] + odd[random.IntN(len(odd))] }
		p := newPlay(t)
		var done []string
		do := func(what string, msg tea.Msg) {
			done = append(done, what)
			p.state.update(msg)
		}
		for range 60 {
			s := p.state
			switch random.IntN(9) {
			case 0:
				sizes := []int{0, 1, 2, 3, 5, 10, 20, 40, 79, 80, 100, 500}
				size := tea.WindowSizeMsg{Width: sizes[random.IntN(len(sizes))], Height: sizes[random.IntN(len(sizes)-1)]}
				do(fmt.Sprintf("%d×%d", size.Width, size.Height), size)
			case 1:
				do("paste", tea.PasteMsg{Content: text()})
			case 2:
				records := p.turns(random.IntN(3))
				for i := range records {
					records[i].Text = text()
				}
				do("opened", opened{visit: s.visit, info: conversation.Info{State: conversation.StateOpen}, entries: records, done: random.IntN(2) == 0})
			case 3:
				role := []conversation.Role{conversation.RoleUser, conversation.RoleAssistant}[random.IntN(2)]
				status := []conversation.Status{conversation.StatusAccepted, conversation.StatusComplete, conversation.StatusRejected, conversation.StatusFailed}[random.IntN(4)]
				record := conversation.Record{Turn: random.IntN(9), Ord: random.IntN(9), Role: role, Status: status, Reason: "odd\x1b", Text: text(), Time: noon}
				do("record", happened{visit: s.visit, event: client.Event{Kind: client.Message, Record: record}})
			case 4, 5:
				kind := []conversation.WordsKind{conversation.WordsDelta, conversation.WordsReset, conversation.WordsPartial}[random.IntN(3)]
				words := conversation.Words{Kind: kind, Turn: random.IntN(9), Text: text(), Truncated: random.IntN(5) == 0}
				do("words", happened{visit: s.visit, event: client.Event{Kind: client.Delta, Words: words}})
			case 6:
				do("listed", listed{page: conversation.Listing{Conversations: []conversation.Listed{{Info: conversation.Info{ID: s.id}, Title: text()}, {Info: conversation.Info{ID: "b"}, Title: text()}}, Done: true}})
			default:
				key := keys[random.IntN(len(keys))]
				do(key, keyNamed(key))
			}
			if flaw := flawOf(s); flaw != "" {
				t.Errorf("seed %d, %d×%d: %s; done was %q", seed, s.width, s.height, flaw, done[max(len(done)-8, 0):])
				break
			}
		}
	}
}

// colour is a sequence that sets a style.
var colour = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// flawOf says what is wrong with what stands on the screen.
func flawOf(s *state) string {
	rows := strings.Split(s.view().Content, "\n")
	if len(rows) > s.height {
		return strconv.Itoa(len(rows)) + " rows"
	}
	for _, row := range rows {
		if ansi.StringWidth(row) > s.width {
			return "too wide is " + strconv.Quote(row)
		}
		if strings.ContainsFunc(colour.ReplaceAllString(row, ""), func(r rune) bool { return !printable.Harmless(r) }) {
			return "harmful is " + strconv.Quote(row)
		}
	}
	return ""
}
