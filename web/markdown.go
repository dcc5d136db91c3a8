package web

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// What is more than this is shown as text. Some marks cost a parser the square of
// their number, and a table has as many cells in each line as in its widest.
const (
	maxMarkdownBytes = 64 << 10
	maxMarks         = 4 << 10  // of one kind
	maxCells         = 32 << 10 // of all tables, if the whole text were one
	maxNested        = 32       // lists that begin on one line
)

// markdown knows tables, strikethrough and bare links, shows HTML as the text that
// it is, and makes links of images.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(literal{}, 1))),
)

// literal renders HTML as text, since what a model says about HTML is not to
// vanish, and an image as a link to it, since no page of ours loads one.
type literal struct{}

// RegisterFuncs takes these nodes over.
func (literal) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := node.(*ast.HTMLBlock)
		w.WriteString("<p>")
		for i := range block.Lines().Len() {
			line := block.Lines().At(i)
			w.Write(util.EscapeHTML(line.Value(source)))
		}
		if block.HasClosure() {
			w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
		}
		w.WriteString("</p>\n")
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			w.WriteString("</a>")
			return ast.WalkContinue, nil
		}
		w.WriteString(`<a href="`)
		w.Write(util.EscapeHTML(util.URLEscape(node.(*ast.Image).Destination, true)))
		w.WriteString(`">`)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			for i := range node.(*ast.RawHTML).Segments.Len() {
				segment := node.(*ast.RawHTML).Segments.At(i)
				w.Write(util.EscapeHTML(segment.Value(source)))
			}
		}
		return ast.WalkSkipChildren, nil
	})
}

// sanitizer lets through what markdown makes and nothing that loads, runs, names
// or styles anything: no images, no ids, no classes but a code's language.
var sanitizer = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote",
		"pre", "code", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9+-]{1,32}$`)).OnElements("code")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}()

// Markdown makes HTML of a model's answer: what it says is markup at most, and
// can load, run, name and style nothing (C-30.13). It returns "" for a text that
// is too long, that would cost too much, or that it cannot make HTML of; such a
// one is shown as text.
func Markdown(text string) (html string) {
	if len(text) > maxMarkdownBytes || costly(text) {
		return ""
	}
	defer func() {
		if recover() != nil {
			html = ""
		}
	}()
	var made bytes.Buffer
	if markdown.Convert([]byte(text), &made) != nil {
		return ""
	}
	return sanitizer.Sanitize(made.String())
}

// nests matches the lists and quotations that begin where a line does, and items
// each of them.
var (
	nests = regexp.MustCompile(`^(?:[ \t]*(?:>|(?:[-+*]|[0-9]{1,9}[.)])[ \t]))+`)
	items = regexp.MustCompile(`[-+*>.)]`)
)

// costly reports whether a text may have been written to keep a server busy.
func costly(text string) bool {
	for _, mark := range []string{"[", "*", "_", ">"} {
		if strings.Count(text, mark) > maxMarks {
			return true
		}
	}
	lines, widest := 0, 0
	for line := range strings.Lines(text) {
		lines++
		widest = max(widest, strings.Count(line, "|"))
		if len(items.FindAllString(nests.FindString(line), maxNested+1)) > maxNested {
			return true
		}
	}
	return lines*widest > maxCells
}
