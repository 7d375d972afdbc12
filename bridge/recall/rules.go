package recall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// rulesFresh is how long the rule files next to AGENTS.md are cached.
	rulesFresh = 2 * time.Second
	// maxRuleFiles bounds the files that are read, maxRuleFolders the folders that are searched,
	// maxRuleDepth how deep these lie, and maxRuleEntries how many entries of one are read.
	maxRuleFiles   = 32
	maxRuleFolders = 64
	maxRuleDepth   = 3
	maxRuleEntries = 512
	// maxImportDepth bounds imports of imports.
	maxImportDepth = 5
	// maxRuleLineBytes bounds what a list says of a file.
	maxRuleLineBytes = 300
)

// passedFolders are not searched: what is in them comes from elsewhere. Neither are hidden ones.
var passedFolders = []string{"node_modules", "vendor", "target", "dist", "build", "venv", "third_party"}

// importable are the endings of files that rules may import.
var importable = []string{".md", ".mdc", ".markdown", ".txt"}

// rules are the rule files of a workspace.
type rules struct {
	until time.Time
	text  string
	names []string
}

// ruleReader reads rule files. No link leads it out of the workspace, which the root sees to, and
// no file is read twice.
type ruleReader struct {
	ctx   context.Context //nolint:containedctx // of one call
	root  *os.Root
	files *native.Reader
	left  int // bytes
	seen  map[string]bool
	texts map[[sha256.Size]byte]bool
	out   []string
	names []string
}

// rulesOf are the rule files of a workspace next to its AGENTS.md: CLAUDE.md, the rules of Cursor,
// AGENTS.md and CLAUDE.md of folders, and the list of skills that lie in folders.
func (a *AgentsFiles) rulesOf(ctx context.Context, scope kv.Scope, root *os.Root, agents string) rules {
	a.mu.Lock()
	known := a.rules[scope]
	a.mu.Unlock()
	if time.Now().Before(known.until) {
		return known
	}
	r := newRuleReader(ctx, a.files, root)
	r.seen[agentsFile] = true
	r.texts[sha256.Sum256([]byte(strings.TrimSpace(agents)))] = true
	for _, name := range []string{"CLAUDE.md", ".claude/CLAUDE.md"} {
		r.add(name, r.read(name, 0))
	}
	r.cursor()
	r.folders()
	r.skills()
	known = rules{until: time.Now().Add(rulesFresh), text: strings.Join(r.out, "\n\n"), names: r.names}
	if ctx.Err() != nil {
		return known
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rules) >= maxAgentsKept {
		clear(a.rules)
	}
	a.rules[scope] = known
	return known
}

func newRuleReader(ctx context.Context, files *native.Reader, root *os.Root) *ruleReader {
	return &ruleReader{
		ctx: ctx, root: root, files: files, left: settings.MaxAgentsBytes, seen: make(map[string]bool), texts: make(map[[sha256.Size]byte]bool),
	}
}

// read is the text of a file with what it imports; empty where it is none, or was read before.
func (r *ruleReader) read(name string, depth int) string {
	if r.seen[name] || len(r.seen) > maxRuleFiles || r.left <= 0 {
		return ""
	}
	said, _, err := r.files.Head(r.ctx, r.root, name, r.left)
	if err != nil || bytes.IndexByte(said, 0) >= 0 {
		return ""
	}
	r.seen[name] = true
	r.left -= len(said)
	return r.expand(text.Valid(string(text.WholeChars(said))), name, depth)
}

// expand puts in the place of lines such as `@docs/style.md` and `@import docs/style.md` what the
// file says, outside code. A line that leads to nothing stays.
func (r *ruleReader) expand(said, name string, depth int) string {
	if depth >= maxImportDepth || !strings.HasPrefix(said, "@") && !strings.Contains(said, "\n@") {
		return said
	}
	lines, code := strings.Split(said, "\n"), false
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		from, is := strings.CutPrefix(line, "@")
		from = strings.TrimSpace(strings.TrimPrefix(from, "import "))
		if !is || code || !slices.Contains(importable, path.Ext(from)) || path.IsAbs(from) {
			continue
		}
		from = path.Join(path.Dir(name), strings.Trim(from, `"'`))
		if r.seen[from] {
			lines[i] = ""
		} else if imported := r.read(from, depth+1); imported != "" {
			r.names = append(r.names, from)
			lines[i] = strings.TrimSpace(imported)
		}
	}
	return strings.Join(lines, "\n")
}

// add adds what a file says, unless another said the same.
func (r *ruleReader) add(name, said string) {
	said = strings.TrimSpace(said)
	sum := sha256.Sum256([]byte(said))
	if said == "" || r.texts[sum] {
		return
	}
	r.texts[sum] = true
	r.names = append(r.names, name)
	r.out = append(r.out, "# "+text.OneLine(name)+"\n"+said)
}

// entries are the entries of a folder, by name.
func (r *ruleReader) entries(folder string) []fs.DirEntry {
	dir, err := r.root.Open(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	all, _ := dir.ReadDir(maxRuleEntries) // what can't be listed is not there
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// cursor adds the rules of Cursor: in full if they always apply, else only when they apply.
func (r *ruleReader) cursor() {
	const folder = ".cursor/rules"
	var others []string
	for _, entry := range r.entries(folder) {
		if path.Ext(entry.Name()) != ".mdc" {
			continue
		}
		name := path.Join(folder, entry.Name())
		head, body := frontMatter(r.read(name, 0))
		if head["alwaysApply"] == "true" || len(head) == 0 {
			r.add(name, body)
		} else if strings.TrimSpace(body) != "" {
			others = append(others, ruleLine(name, head["description"], head["globs"]))
		}
	}
	r.list("Rules to read when they apply", folder, others)
}

// folders adds AGENTS.md and CLAUDE.md of folders, which hold for what lies in them.
func (r *ruleReader) folders() {
	queue := []string{"."}
	for looked := 0; len(queue) > 0 && looked < maxRuleFolders && r.ctx.Err() == nil; looked++ {
		folder := queue[0]
		queue = queue[1:]
		for _, entry := range r.entries(folder) {
			name := path.Join(folder, entry.Name())
			switch {
			case entry.IsDir():
				if !strings.HasPrefix(entry.Name(), ".") && !slices.Contains(passedFolders, entry.Name()) && strings.Count(name, "/") < maxRuleDepth {
					queue = append(queue, name)
				}
			case folder != "." && (entry.Name() == agentsFile || entry.Name() == "CLAUDE.md"):
				r.add(name, r.read(name, 0))
			}
		}
	}
}

// skills lists the skills that lie in folders. What they say is read as any file is.
func (r *ruleReader) skills() {
	for _, folder := range []string{".agents/skills", ".claude/skills"} {
		var lines []string
		for _, entry := range r.entries(folder) {
			name := path.Join(folder, entry.Name(), "SKILL.md")
			if head, body := frontMatter(r.read(name, maxImportDepth)); len(head) > 0 || body != "" {
				lines = append(lines, ruleLine(name, cmp.Or(head["name"], entry.Name()), head["description"]))
			}
		}
		r.list("Skills to read before such work", folder, lines)
	}
}

func (r *ruleReader) list(about, folder string, lines []string) {
	if len(lines) > 0 {
		r.names = append(r.names, folder)
		r.out = append(r.out, "# "+about+"\n"+strings.Join(lines, "\n"))
	}
}

// ruleLine says when to read a file.
func ruleLine(name string, about ...string) string {
	said := strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), ": ")
	return text.Cut(text.OneLine("- "+name+": "+said), maxRuleLineBytes, text.Ellipsis)
}

// frontMatter are the lines between --- at the beginning of a text, by name, and what follows.
func frontMatter(said string) (head map[string]string, body string) {
	rest, is := strings.CutPrefix(strings.TrimSpace(strings.ReplaceAll(said, "\r\n", "\n")), "---\n")
	front, body, closed := strings.Cut(rest, "\n---")
	if !is || !closed {
		return nil, said
	}
	head = make(map[string]string)
	for line := range strings.Lines(front) {
		if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			head[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return head, strings.TrimSpace(body)
}
