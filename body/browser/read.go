package browser

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
)

// size says whether a page is small enough to be read by its elements, 20,000 of
// them with 2 Mi characters, and holds the start of the text of one that is not.
// The functions are taken from where a page cannot change them.
const size = `(() => {
	const all = Document.prototype.getElementsByTagName.call(document, "*");
	const root = all[0];
	const content = root ? Object.getOwnPropertyDescriptor(Node.prototype, "textContent").get.call(root) : "";
	const small = all.length <= 20000 && content.length <= 2097152;
	const shown = small || !root ? "" : Object.getOwnPropertyDescriptor(HTMLElement.prototype, "innerText").get.call(root);
	return { small, text: shown.slice(0, 65536) };
})()`

// acts are the roles of elements that can be clicked or typed into.
var acts = map[string]bool{
	"button": true, "checkbox": true, "combobox": true, "link": true, "listbox": true, "menuitem": true,
	"menuitemcheckbox": true, "menuitemradio": true, "option": true, "radio": true, "searchbox": true, "slider": true,
	"spinbutton": true, "switch": true, "tab": true, "textbox": true, "treeitem": true,
	"DisclosureTriangle": true, "textField": true,
}

// read reads the page.
func (p *page) read(ctx context.Context) (any, error) {
	p.take()
	var page struct {
		Small bool   `json:"small"`
		Text  string `json:"text"`
	}
	if err := p.ask(ctx, size, &page); err != nil {
		return nil, err
	}
	p.mu.Lock()
	document := p.document
	p.mu.Unlock()
	r := reader{elements: map[int]cdp.BackendNodeID{}}
	if page.Small {
		tree, err := cdp.Call(ctx, p.target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return nil, err
		}
		r.read(tree.Nodes)
	} else {
		r.truncated = true
		r.text.WriteString(clip(page.Text, MaxTextBytes))
	}
	p.mu.Lock()
	p.elements, p.numbered = r.elements, document
	p.mu.Unlock()
	address, title, err := p.describe(ctx)
	return Text{URL: address, Title: title, Text: r.text.String(), Truncated: r.truncated, Notes: p.take()}, err
}

// reader writes an accessibility tree as text.
type reader struct {
	nodes     map[accessibility.NodeID]*accessibility.Node
	text      strings.Builder
	elements  map[int]cdp.BackendNodeID
	truncated bool
}

func (r *reader) read(nodes []*accessibility.Node) {
	r.nodes = make(map[accessibility.NodeID]*accessibility.Node, len(nodes))
	for _, n := range nodes {
		r.nodes[n.NodeID] = n
	}
	for _, n := range nodes {
		if n.ParentID == "" {
			r.walk(n, 0, "")
		}
	}
}

// walk writes a node and what is beneath it. said is the name of the element
// around it, which its own text would repeat. A tree is no deeper than it has
// nodes, and a node is written once.
func (r *reader) walk(n *accessibility.Node, depth int, said string) {
	delete(r.nodes, n.NodeID)
	role, name := word(n.Role), strings.Join(strings.Fields(word(n.Name)), " ")
	switch {
	case n.Ignored, role == "InlineTextBox", role == "RootWebArea", role == "LineBreak":
	case role == "StaticText":
		if name != "" && !strings.Contains(said, name) {
			r.line(depth, name)
		}
	case acts[role]:
		ref := len(r.elements) + 1
		if r.line(depth, fmt.Sprintf("[%d] %s %q%s", ref, role, name, state(n))) {
			r.elements[ref] = n.BackendDOMNodeID
		}
		depth, said = depth+1, name
	case name != "" && role != "generic" && role != "none":
		r.line(depth, fmt.Sprintf("%s %q%s", role, name, state(n)))
		depth, said = depth+1, name
	case role == "list" || role == "listitem" || role == "table" || role == "row":
		r.line(depth, role)
		depth++
	}
	for _, id := range n.ChildIDs {
		if child := r.nodes[id]; child != nil {
			r.walk(child, depth, said)
		}
	}
}

// line writes a line, if there is room for it.
func (r *reader) line(depth int, text string) bool {
	line := strings.Repeat("  ", min(depth, 20)) + text + "\n"
	if r.truncated || r.text.Len()+len(line) > MaxTextBytes {
		r.truncated = true
		return false
	}
	r.text.WriteString(line)
	return true
}

// state says what else is to know of an element.
func state(n *accessibility.Node) string {
	var all strings.Builder
	if value := word(n.Value); value != "" {
		fmt.Fprintf(&all, " = %q", value)
	}
	for _, p := range n.Properties {
		switch value := word(p.Value); p.Name {
		case "checked", "selected", "expanded", "disabled", "required":
			if value != "" && value != "false" {
				fmt.Fprintf(&all, " %s", p.Name)
			}
		case "level":
			fmt.Fprintf(&all, " level %s", value)
		}
	}
	return all.String()
}

// word returns a value of the tree as text.
func word(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal([]byte(v.Value), &text) != nil {
		text = string(v.Value)
	}
	return clip(text, MaxTextBytes)
}
