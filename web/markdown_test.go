package web

import (
	"strings"
	"testing"
)

// C-30.13: markup is made of markdown, and nothing in it can run, load, name or
// style anything; HTML is shown as the text that it is, and nothing vanishes.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                       "<p>plain</p>\n",
		"**a** _b_ `c` ~~d~~":         "<p><strong>a</strong> <em>b</em> <code>c</code> <del>d</del></p>\n",
		"```go\nx := \"<b>\"\n```":    "<pre><code class=\"language-go\">x := &#34;&lt;b&gt;&#34;\n</code></pre>\n",
		"<script>alert(1)</script> x": "<p>&lt;script&gt;alert(1)&lt;/script&gt; x</p>\n",
		"a <b onclick=x>c</b>":        "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n",
		"[x](javascript:alert(1))":    "<p>x</p>\n",
		"[x](data:text/html,y)":       "<p>x</p>\n",
		"![i](javascript:x)":          "<p>i</p>\n",
		"[x](/relative)":              "<p>x</p>\n",
		"<!-- c -->":                  "<p>&lt;!-- c --&gt;</p>\n",
		"":                            "",
	} {
		if got := Markdown(text); got != want {
			t.Errorf("Markdown(%q) = %q; want %q", text, got, want)
		}
	}
	link := Markdown("https://example.org/?a=1&b=2")
	for _, want := range []string{`href="https://example.org/?a=1&amp;b=2"`, `rel="`, "nofollow", "noreferrer", "noopener", `target="_blank"`} {
		if !strings.Contains(link, want) {
			t.Errorf("a link is %s; want %s in it", link, want)
		}
	}
	if got := Markdown("![a *cat*](https://e.example/x.png)"); strings.Contains(got, "<img") || !strings.Contains(got, "a <em>cat</em></a>") {
		t.Errorf("an image is %s; want a link to it", got)
	}
}

// C-30.13: no text costs the server more than it is worth: the parser needs the
// square of the number of some marks, and a table of 64 KiB may have a hundred
// million cells.
func TestMarkdownIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"a long text": strings.Repeat("a ", maxMarkdownBytes), "brackets": strings.Repeat("[a](", 8<<10), "emphasis": strings.Repeat("*a_ ", 8<<10),
		"quotations": strings.Repeat("> ", 8<<10), "lists": "a\n\n" + strings.Repeat("+ ", 30<<10), "numbered lists": strings.Repeat("1. > ", 4<<10), "a wide table": strings.Repeat("|a", 4<<10) + "\n" + strings.Repeat("|-", 4<<10) + "\n" + strings.Repeat("a\n", 16<<10),
	} {
		if got := Markdown(text); got != "" {
			t.Errorf("of %s, %d bytes, %d bytes of HTML are made; want it shown as text", name, len(text), len(got))
		}
	}
	if got := Markdown("a\n\n" + strings.Repeat("-", 200) + "\n\n- > 1. b"); !strings.Contains(got, "<hr>") || !strings.Contains(got, "<ol>") {
		t.Errorf("a rule and a list in a quotation in a list are made %q", got)
	}
	table := "|a|b|\n|-|-|\n" + strings.Repeat("|1|2|\n", 2000)
	if got := strings.Count(Markdown(table), "<tr>"); got != 2001 {
		t.Errorf("a long table has %d rows, want 2001", got)
	}
}

// Whatever a model says, no element comes out that is not known, and no
// attribute that could do anything.
func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{"# a", "<img src=x onerror=y>", "[a](b)", "|a|\n|-|\n|b|", "```\n<\n```", "<a href=\"javascript:x\">", "\u202e", "&#106;avascript:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		html := strings.ToLower(Markdown(text))
		for rest := html; ; {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				return
			}
			tag, more, ok := strings.Cut(after, ">")
			if !ok {
				t.Fatalf("Markdown(%q) has an open tag: %q", text, html)
			}
			name := strings.Fields(strings.TrimPrefix(tag, "/") + " ")
			if len(name) == 0 || strings.Contains(tag, " on") && strings.Contains(tag, "=\"") && !strings.HasPrefix(tag, "a ") {
				t.Fatalf("Markdown(%q) has the tag %q", text, tag)
			}
			switch name[0] {
			case "script", "style", "img", "iframe", "svg", "object", "form", "input", "link", "meta", "base":
				t.Fatalf("Markdown(%q) has the tag %q", text, tag)
			}
			rest = more
		}
	})
}
