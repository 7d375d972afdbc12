package server_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/loom-bridge/loom-bridge/"

// goFile is one file of ours and what it imports: packages of this module,
// without its name, and those of others.
type goFile struct {
	path, dir   string
	own, others []string
	test        bool
}

// goFiles returns all Go files of the module that are not generated.
func goFiles(tb testing.TB) []goFile {
	tb.Helper()
	var files []goFile
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if entry.IsDir() {
			if name := entry.Name(); path != ".." && (strings.HasPrefix(name, ".") || rel == "proto" || rel == "clients" || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := goFile{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(path, "_test.go")}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if name+"/" == module { // the root, with the pages
				file.own = append(file.own, ".")
			} else if own, ok := strings.CutPrefix(name, module); ok {
				file.own = append(file.own, own)
			} else {
				file.others = append(file.others, name)
			}
		}
		files = append(files, file)
		return nil
	})
	must(tb, err)
	if len(files) < 50 {
		tb.Fatalf("only %d files found", len(files))
	}
	return files
}

// within reports whether a package is one of the trees.
func within(pkg string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") })
}

// Imports point one way: server, then bridge, then context and memory, which do
// not know each other, then memory/kv.
func TestImportDirections(t *testing.T) {
	forbidden := []struct {
		from, but []string
		to        []string
		allowed   []string
		why       string
	}{
		{from: []string{"memory"}, to: []string{"context", "bridge", "server", "proto"}, allowed: []string{"proto/gen/store"}, why: "memory stands below"},
		{from: []string{"memory/kv"}, to: []string{"memory"}, allowed: []string{"memory/kv"}, why: "kv is the bottom"},
		{from: []string{"context"}, to: []string{"memory"}, allowed: []string{"memory/kv"}, why: "context and memory do not know each other"},
		{from: []string{"context"}, to: []string{"bridge", "server", "proto"}, allowed: []string{"proto/gen/store"}, why: "context stands below"},
		{from: []string{"bridge"}, to: []string{"server", "proto"}, allowed: []string{"proto/gen/store"}, why: "bridge stands below the server"},
		{
			from: []string{"memory", "context", "bridge", "server"}, but: []string{"memory/kv", "server/cmd"},
			to: []string{"memory/kv/rockskv", "memory/kv/pgkv"}, why: "only a command knows which engine there is",
		},
		{
			// memory/past makes an index for the length of one query.
			from: []string{"memory", "context", "bridge", "server"}, but: []string{"memory/kv", "memory/past", "server/cmd"},
			to: []string{"memory/kv/memkv"}, why: "what is kept in memory is lost; only a command knows which engine there is",
		},
		{from: []string{"server"}, but: []string{"server/cmd"}, to: []string{"server/cmd"}, why: "commands are the top"},
	}
	for _, file := range goFiles(t) {
		for _, rule := range forbidden {
			if file.test || !within(file.dir, rule.from...) || within(file.dir, rule.but...) {
				continue
			}
			for _, name := range file.own {
				if within(name, rule.to...) && !within(name, rule.allowed...) {
					t.Errorf("%s imports %s: %s", file.path, name, rule.why)
				}
			}
		}
	}
}

// What the two programs are built from is the product; whatever else there is stands in
// internal/testkit, which several packages' tests use, or belongs to the benchmark.
func TestProduct(t *testing.T) {
	beside := []string{"internal/testkit", "server/cmd/loom-bridge-bench"}
	imports := make(map[string][]string)
	for _, file := range goFiles(t) {
		if !file.test {
			imports[file.dir] = append(imports[file.dir], file.own...)
		}
	}
	product := []string{"server/cmd/loom-bridge-server", "bridge/sandbox/helper"}
	for i := 0; i < len(product); i++ {
		if within(product[i], beside...) {
			t.Errorf("the product contains %s", product[i])
		}
		for _, pkg := range imports[product[i]] {
			if !slices.Contains(product, pkg) {
				product = append(product, pkg)
			}
		}
	}
	for pkg := range imports {
		// It measures with the settings of rockskv, which are internal to that.
		if !slices.Contains(product, pkg) && !within(pkg, beside...) && pkg != "memory/kv/rockskv/barerocks" {
			t.Errorf("%s is in no program: tests of one package belong beside it, kits into internal/testkit", pkg)
		}
	}
}

// One door each: what only one package may import.
func TestOneDoors(t *testing.T) {
	domain := []string{"memory", "context", "bridge"}
	doors := []struct {
		imported string
		only     []string
		tests    bool // tests may, too
	}{
		{"github.com/linxGnu/grocksdb", []string{"memory/kv/rockskv"}, false},
		{"github.com/jackc", []string{"memory/kv/pgkv", "internal/testkit/pgtest", "server/cmd/loom-bridge-bench/postgres"}, true},
		{"github.com/zeebo/xxh3", []string{"memory/kv/rockskv"}, false},
		{"github.com/pierrec/lz4", []string{"memory/kv/rockskv"}, false},
		{"github.com/pkoukk/tiktoken-go", []string{"context/tokens"}, false},
		{"github.com/pkoukk/tiktoken-go-loader", []string{"context/tokens"}, false},
		{"os/exec", []string{"bridge/sandbox", "internal/testkit", "server/cmd/loom-bridge-bench"}, true},
		{"google.golang.org/grpc", []string{"server", "internal/testkit/contexts", "internal/testkit/servertest"}, false},
		{"github.com/yuin/goldmark", []string{"server/manual"}, false},
		{"github.com/spf13/cobra", []string{"server/cmd"}, false},
		{"github.com/spf13/pflag", []string{"server/cmd"}, false},
		{"flag", []string{"server/cmd", "internal/testkit"}, true},
		{"log", nil, true}, // examples end with it
	}
	for _, file := range goFiles(t) {
		for _, name := range file.others {
			for _, door := range doors {
				if within(name, door.imported) && name != "log/slog" && !within(file.dir, door.only...) && !(door.tests && file.test) {
					t.Errorf("%s imports %s, which only %v may", file.path, name, door.only)
				}
			}
		}
		if within(file.dir, domain...) && !file.test {
			checkEnvironment(t, file)
		}
		if !file.test && !within(file.dir, "bridge/sandbox", "internal/testkit", "server/cmd/loom-bridge-bench") {
			checkText(t, file, processStart, "only bridge/sandbox starts processes")
		}
	}
}

var environment = regexp.MustCompile(`\bos\.(Getenv|LookupEnv|Environ)\b`)

func checkEnvironment(t *testing.T, file goFile) {
	t.Helper()
	checkText(t, file, environment, "settings come through Options")
}

// processStart is what starts a process without os/exec.
var processStart = regexp.MustCompile(`\bos\.StartProcess\b|\b(syscall|unix)\.(ForkExec|StartProcess|Exec|SYS_(EXECVE|EXECVEAT|FORK|VFORK|CLONE3?))\b`)

func checkText(t *testing.T, file goFile, forbidden *regexp.Regexp, why string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file.path))
	must(t, err)
	if found := forbidden.Find(text); found != nil {
		t.Errorf("%s uses %s: %s", file.path, found, why)
	}
}

// The protos import google's well-known types and each other, so that every
// generator works with nothing else at hand.
func TestProtoImports(t *testing.T) {
	imports := regexp.MustCompile(`(?m)^import (?:public )?"([^"]+)";`)
	own := regexp.MustCompile(`^(google/protobuf|loombridge/v1|loom/v1|store/v1)/[a-z_]+\.proto$`)
	found := 0
	must(t, filepath.WalkDir("../proto", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".proto") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			found++
			if !own.MatchString(m[1]) {
				t.Errorf("%s imports %s", path, m[1])
			}
		}
		return err
	}))
	if found == 0 {
		t.Error("no imports were found")
	}
}
