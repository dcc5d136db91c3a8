// Package parley_test holds the house together: it knows which package may
// import which, and nothing else.
package parley_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const module = "github.com/parley-run/parley"

// layers lists the packages from top to bottom; imports point down. Packages
// that share a line do not import each other; "x/..." is x with all beneath it.
// Where two entries fit a package, the longer one holds.
var layers = [][]string{
	{"."},
	{"internal/bench/...", "internal/mutants", "internal/testrun", "examples/..."},
	{"cmd/..."},
	{"server/..."},
	{"web/..."},
	{"gateway/..."},
	{"client/..."},
	{"body/browser/...", "body/discord/...", "body/voice/...", "body/play/...", "body/computer/..."},
	{"delivery/..."},
	{"conversation/...", "lease/..."},
	{"body/sim"},
	{"body/bodytest"},
	{"body"},
	{"agent/..."},
	{"model/..."},
	{"tool/..."},
	{"taint"},
	{"kernel/..."},
	{"journal/..."},
	{"identity"},
	{"fault"},
	{"internal/contracttest"},
	{"internal/browsertest"},
}

// libraries says which packages may import which library outside their tests.
// Core packages stay free of what a library user may not want to link.
var libraries = map[string][]string{
	"charm.land/bubbles":                  {"cmd/..."},
	"charm.land/bubbletea":                {"cmd/..."},
	"charm.land/catwalk":                  {"server/..."},
	"charm.land/fantasy":                  {"model/openai/...", "model/anthropic/...", "model/google/...", "model/internal/..."},
	"charm.land/glamour":                  {"cmd/..."},
	"charm.land/lipgloss":                 {"cmd/..."},
	"github.com/alecthomas/kong":          {"cmd/..."},
	"github.com/anishathalye/porcupine":   {"*test"},
	"github.com/cenkalti/backoff":         {"server/...", "delivery/...", "client/...", "tool/mcp"},
	"github.com/charmbracelet/x":          {"body/play/...", "cmd/..."},
	"github.com/chromedp/cdproto":         {"body/browser/...", "*test"},
	"github.com/chromedp/chromedp":        {"body/browser/...", "*test"},
	"github.com/coreos/go-oidc":           {"server/...", "gateway/..."},
	"github.com/creack/pty":               {"body/play/..."},
	"github.com/disgoorg":                 {"body/discord/...", "body/voice/..."},
	"github.com/gofrs/flock":              {"server/...", "cmd/...", "journal/sqlite/..."},
	"github.com/google/go-cmp":            {"*test"},
	"github.com/google/jsonschema-go":     {"tool"},
	"github.com/google/renameio":          {"server/...", "cmd/..."},
	"github.com/jackc/pgx":                {"journal/postgres/..."},
	"github.com/jackc/pgxlisten":          {"journal/postgres/..."},
	"github.com/mattn/go-isatty":          {"cmd/..."},
	"github.com/microcosm-cc/bluemonday":  {"web/...", "gateway/..."},
	"github.com/modelcontextprotocol":     {"tool/mcp"},
	"github.com/nats-io":                  {"server/..."},
	"github.com/nats-io/nats-server":      {}, // tests embed it, nothing else
	"github.com/pb33f":                    {"*test"},
	"github.com/pelletier/go-toml":        {"server/..."},
	"github.com/pressly/goose":            {"journal/sqlite/...", "journal/postgres/..."},
	"github.com/prometheus/client_golang": {"server/...", "gateway/..."},
	"github.com/yuin/goldmark":            {"web/...", "gateway/..."},
	"go.opentelemetry.io/otel":            {"server/..."},
	"golang.org/x/sys":                    {"server/...", "cmd/...", "body/browser/...", "body/play/..."},
	"golang.org/x/term":                   {"cmd/..."},
	"golang.org/x/text/unicode/norm":      {"taint"},
	"golang.org/x/time/rate":              {"gateway/...", "server/..."},
	"modernc.org/sqlite":                  {"journal/sqlite/...", "internal/bench/..."},
	"pgregory.net/rapid":                  {"*test"},
	"zombiezen.com/go/sqlite":             {"journal/sqlite/...", "internal/bench/..."},
}

// adapters says which packages may import a package of ours that links a heavy
// library, outside their tests: who holds conversations does not link the SDK of
// MCP.
var adapters = map[string][]string{
	"tool/mcp": {"server/..."},
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// path returns the package's folder within the module.
func (p pkg) path() string { return local(p.ImportPath) }

// local returns the folder of an import path of the module, "." for its root.
func local(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func ours(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// standard reports whether the import is of the standard library, whose first
// path element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// fits reports whether the pattern covers the folder; "*test" covers the suites.
func fits(pattern, folder string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(folder, suffix)
	}
	tree, ok := strings.CutSuffix(pattern, "/...")
	return folder == tree || ok && strings.HasPrefix(folder, tree+"/")
}

// place finds the folder's line in layers and the entry that put it there.
func place(folder string) (line int, entry string, ok bool) {
	for i, entries := range layers {
		for _, e := range entries {
			if fits(e, folder) && len(e) > len(entry) {
				line, entry, ok = i, e, true
			}
		}
	}
	return line, entry, ok
}

// C-1.1, C-1.2: imports point down, and each package has a place.
func TestLayers(t *testing.T) {
	for _, p := range list(t) {
		line, entry, ok := place(p.path())
		if !ok {
			t.Errorf("package %s has no place: add it to layers in arch_test.go", p.path())
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if !ours(imported) {
				continue
			}
			below, other, ok := place(local(imported))
			switch {
			case !ok, other == entry: // no place is reported for the package itself
			case below < line:
				t.Errorf("%s imports %s, which stands above it", p.path(), local(imported))
			case below == line:
				t.Errorf("%s imports %s, which stands beside it: a layer above joins them", p.path(), local(imported))
			}
		}
	}
}

// Heavy libraries stay where they are needed, so that a program which uses one
// package links no more than it uses. Tests may import what they like.
func TestLibraries(t *testing.T) {
	for _, p := range list(t) {
		for _, imported := range p.Imports {
			if places, ok := adapters[local(imported)]; ok && !slices.ContainsFunc(places, func(pattern string) bool { return fits(pattern, p.path()) }) {
				t.Errorf("%s imports %s, which only %v may", p.path(), local(imported), places)
			}
			if standard(imported) || ours(imported) {
				continue
			}
			places, ok := allowed(imported)
			if !ok {
				t.Errorf("%s imports %s, which no package may: give a reason and add it to libraries in arch_test.go", p.path(), imported)
				continue
			}
			if !slices.ContainsFunc(places, func(pattern string) bool { return fits(pattern, p.path()) }) {
				t.Errorf("%s imports %s, which only %v may", p.path(), imported, places)
			}
		}
	}
}

// allowed returns the places of the library that holds the package.
func allowed(importPath string) (places []string, ok bool) {
	longest := ""
	for library, where := range libraries {
		if fits(library+"/...", importPath) && len(library) > len(longest) {
			longest, places, ok = library, where, true
		}
	}
	return places, ok
}

// C-1.3: the kernel has no word of the layers above it.
func TestKernelKnowsNoConversation(t *testing.T) {
	words := []string{
		"agent", "asker", "barge", "chat", "conversation", "conversations", "coordinator", "envelope", "envelopes",
		"gateway", "hub", "lease", "leases", "participant", "participants", "summarizer", "transcript", "transcripts", "viewer",
	}
	files, err := filepath.Glob("kernel/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob(kernel/*.go) = %v, %v, want the kernel's source", files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(source), "\n") {
			for _, word := range split(line) {
				if slices.Contains(words, word) {
					t.Errorf("%s:%d: the kernel says %q (C-1.3)", name, i+1, word)
				}
			}
		}
	}
}

// split cuts a line of Go into lower-case words, names like HubScope included.
func split(line string) []string {
	var spaced strings.Builder
	var before rune
	for _, r := range line {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

// The tests above are worth what their helpers are worth.
func TestHelpers(t *testing.T) {
	for folder, want := range map[string]string{
		".": ".", "kernel": "kernel/...", "kernel/internal/x": "kernel/...", "body": "body", "body/sim": "body/sim",
		"body/browser/cdp": "body/browser/...", "body/else": "", "kernelx": "", "model/openai": "model/...",
	} {
		if _, got, _ := place(folder); got != want {
			t.Errorf("place(%q) is by %q, want %q", folder, got, want)
		}
	}
	if !fits("*test", "model/modeltest") || fits("*test", "internal/testrun") {
		t.Error("*test does not tell suites from others")
	}
	if _, ok := allowed("golang.org/x/text/unicode/bidi"); ok {
		t.Error("a neighbour of an allowed package is allowed")
	}
	if places, ok := allowed("github.com/nats-io/nats-server/v2/server"); !ok || len(places) != 0 {
		t.Errorf("allowed(nats-server) = %v, %t, want the longer entry", places, ok)
	}
	if got := split("func newHubScope(e *LeaseID) // released"); !slices.Equal(got, []string{"func", "new", "hub", "scope", "e", "lease", "id", "released"}) {
		t.Errorf("split = %q", got)
	}
}

// list asks the go command for every package of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	touchSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list answered something else than packages: %v", err)
		}
		all = append(all, p)
	}
}

// touchSources looks at every folder and Go file, because go test serves a pass
// from its cache until something that the test itself has looked at changes.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // an editor's file, gone again
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
