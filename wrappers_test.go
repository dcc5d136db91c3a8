package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// SSE-6, SSE-7, check 44: whatever stands around an http.ResponseWriter says what is
// in it, or a stream behind it would have no deadlines and no flush. (A stream that
// finds none says so: TestStreamNeedsDeadlines of the gateway.)
func TestSSE6ResponseWritersUnwrap(t *testing.T) {
	wrappers, unwrap := map[string]token.Position{}, map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv != nil && decl.Name.Name == "Unwrap" {
					unwrap[filepath.Dir(path)+"."+typeName(decl.Recv.List[0].Type)] = true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok && wrapsWriter(named.Type) {
						wrappers[filepath.Dir(path)+"."+named.Name.Name] = files.Position(named.Pos())
					}
				}
			}
		}
		return nil
	})
	if err != nil || len(wrappers) == 0 {
		t.Fatalf("%d wrappers, %v; want those of the tests at least", len(wrappers), err)
	}
	for name, place := range wrappers {
		if !unwrap[name] {
			t.Errorf("%v: %s wraps an http.ResponseWriter and has no Unwrap", place, name)
		}
	}
}

// wrapsWriter reports whether a type is a struct that embeds an http.ResponseWriter.
func wrapsWriter(expr ast.Expr) bool {
	structure, ok := expr.(*ast.StructType)
	if !ok {
		return false
	}
	for _, field := range structure.Fields.List {
		selector, ok := field.Type.(*ast.SelectorExpr)
		if ok && len(field.Names) == 0 && selector.Sel.Name == "ResponseWriter" {
			return true
		}
	}
	return false
}

// typeName is the name of a receiver's type.
func typeName(expr ast.Expr) string {
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	if ident, ok := expr.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}
