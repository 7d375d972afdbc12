// Package manual shows the pages of the tree in a browser, as the binary embeds them, without a
// network. A page's address is its path in the tree, so that the links
// between pages lead where they lead in the tree.
package manual

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	loombridge "github.com/loom-bridge/loom-bridge"
	"github.com/loom-bridge/loom-bridge/server/web"
)

// Path begins the address of every page.
const Path = "/docs/"

// policy lets a page have the style and the pictures of this server and nothing else; drawing
// lets a picture have its own style.
const (
	policy  = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	drawing = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
)

// pictures are the types of files that pages show.
var pictures = map[string]string{".svg": "image/svg+xml", ".png": "image/png"}

// page is one entry of the list of all.
type page struct{ Title, Name string }

// index lists every page, the first one first.
var index = []struct {
	Title string
	Pages []page
}{
	{"Start", []page{
		{"Loom Bridge", "README.md"},
		{"Concepts", "server/docs/concepts.md"},
		{"Running a server", "server/docs/running.md"},
		{"Moving here", "server/docs/migrating.md"},
		{"Examples", "clients/python/examples/README.md"},
		{"What is new", "CHANGELOG.md"},
	}},
	{"For agents", []page{
		{"Python", "clients/python/README.md"},
		{"TypeScript", "clients/typescript/README.md"},
		{"HTTP", "server/docs/http.md"},
		{"Claude Code, Codex, Cursor: MCP", "server/mcp/README.md"},
		{"loom-py", "server/docs/loom-py.md"},
	}},
	{"What it does", []page{
		{"Prompts", "server/docs/prompts.md"},
		{"Tools and approvals", "server/docs/tools.md"},
		{"Embedders", "server/docs/embedders.md"},
		{"How long things stay", "server/docs/retention.md"},
		{"Erasing", "server/docs/erasing.md"},
	}},
	{"Operating it", []page{
		{"Access, shared memories", "server/docs/security.md"},
		{"Backups", "server/docs/backup.md"},
		{"PostgreSQL, several servers", "server/docs/cluster.md"},
		{"Metrics", "server/docs/metrics.md"},
	}},
	{"Behind it", []page{
		{"Security", "SECURITY.md"},
		{"What the sandbox keeps", "bridge/sandbox/THREATS.md"},
		{"RocksDB: damage", "memory/kv/rockskv/README.md"},
		{"PostgreSQL: what can go wrong", "memory/kv/pgkv/README.md"},
		{"PostgreSQL: figures", "memory/kv/pgkv/FIGURES.md"},
		{"Bytes on disk", "memory/FORMAT.md"},
		{"Rooms of the code", "ARCHITECTURE.md"},
		{"Contributing", "CONTRIBUTING.md"},
	}},
}

//go:embed page.html
var frame string

var framed = template.Must(template.New("page").Parse(frame))

// markdown shows a tag between words as it is written; a comment on separate lines is left out.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(slices.DeleteFunc(parser.DefaultInlineParsers(), func(v util.PrioritizedValue) bool { return v.Value == parser.NewRawHTMLParser() })...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(fitted{}, 0)),
		parser.WithAutoHeadingID(),
	)),
	goldmark.WithExtensions(extension.Table),
)

// ServeHTTP answers with a page, or with a picture of one.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	if name == "" {
		http.Redirect(w, r, Path+index[0].Pages[0].Name, http.StatusFound)
		return
	}
	source, err := loombridge.Pages.ReadFile(name)
	if err != nil {
		web.Refuse(w, r, http.StatusNotFound, "path", "is no page; "+Path+" leads to the first")
		return
	}
	if kind := pictures[path.Ext(name)]; kind != "" {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", drawing)
		_, _ = w.Write(source) // who does not read it has left
		return
	}
	known := parser.NewContext()
	known.Set(nameKey, name)
	var body, whole bytes.Buffer
	// Neither can fail: a buffer takes all, and the template is a constant.
	_ = markdown.Convert(source, &body, parser.WithContext(known))
	_ = framed.Execute(&whole, map[string]any{"Index": index, "Name": name, "Path": Path, "Body": template.HTML(body.String())}) //nolint:gosec // made of our own pages
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	_, _ = w.Write(whole.Bytes()) // who does not read it has left
}

// nameKey is under what fitted finds the name of its page.
var nameKey = parser.NewContextKey()

// fitted takes a link away, and leaves its text, where it leads to a file that is no page; and
// lets the keyboard reach a table.
type fitted struct{}

// Transform implements parser.ASTTransformer.
func (fitted) Transform(document *ast.Document, _ text.Reader, known parser.Context) {
	name, _ := known.Get(nameKey).(string)
	var dead []*ast.Link
	// The function returns no error.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering && !leads(name, string(n.Destination)) {
				dead = append(dead, n)
			}
		case *extast.Table: // keys alone scroll what is wider than a screen
			n.SetAttributeString("tabindex", []byte("0"))
		}
		return ast.WalkContinue, nil
	})
	for _, link := range dead {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
}

// leads reports whether a link of a page leads to a page, or away from the tree.
func leads(from, to string) bool {
	at, err := url.Parse(to)
	if err != nil || at.IsAbs() || at.Path == "" {
		return err == nil
	}
	_, err = loombridge.Pages.ReadFile(path.Join(path.Dir(from), at.Path))
	return err == nil
}
