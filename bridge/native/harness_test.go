package native_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// bench is a workspace with the tools on it, and what lies around it.
type bench struct {
	tb       testing.TB
	dir      string // the workspace
	outside  string // a folder beside it
	root     *os.Root
	registry *tools.Registry
}

// MustBench makes a workspace that holds files. The store is .loom/store in it.
func MustBench(tb testing.TB, files map[string]string, blobs native.Blobs) *bench {
	tb.Helper()
	top := tb.TempDir()
	b := &bench{tb: tb, dir: filepath.Join(top, "work"), outside: filepath.Join(top, "outside"), registry: tools.NewRegistry(nil)}
	store := filepath.Join(b.dir, ".loom", "store")
	for _, dir := range []string{store, b.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	b.put(".loom/store/CURRENT", "the store's own")
	b.put("../outside/secret", "outside")
	for name, content := range files {
		b.put(name, content)
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		tb.Fatal(err)
	}
	b.root = root
	tb.Cleanup(func() { _ = root.Close() })
	if err := native.Register(b.registry, &native.Options{Store: store, Blobs: blobs}); err != nil {
		tb.Fatal(err)
	}
	return b
}

// put writes a file without the tools.
func (b *bench) put(name, content string) {
	b.tb.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.tb.Fatal(err)
	}
}

// link makes a symbolic link without the tools.
func (b *bench) link(target, name string) {
	b.tb.Helper()
	if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
		b.tb.Fatal(err)
	}
}

// get reads a file without the tools.
func (b *bench) get(name string) string {
	b.tb.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.tb.Fatal(err)
	}
	return string(content)
}

// names lists everything below the workspace and beside it, with sizes, so that
// a test can tell that nothing changed.
func (b *bench) names() map[string]int64 {
	b.tb.Helper()
	found := map[string]int64{}
	err := filepath.WalkDir(filepath.Dir(b.dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			found[path] = info.Size()
		} else {
			found[path] = -1
		}
		return err
	})
	if err != nil {
		b.tb.Fatal(err)
	}
	return found
}

// args is a call's arguments.
type args map[string]any

// try calls a tool as the hand does and returns its output with the body's text.
func (b *bench) try(name string, a args) (map[string]any, error) {
	b.tb.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		b.tb.Fatal(err)
	}
	parsed, err := tools.ParseArguments(text)
	if err != nil {
		return nil, err
	}
	tool, err := b.registry.Lookup(name)
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := tool.Check(parsed); err != nil {
		return nil, err
	}
	result, err := tool.Run(b.tb.Context(), tools.Input{Scope: kv.AgentScope("default", "tester"), Root: b.root, Args: parsed})
	if err != nil {
		return nil, err
	}
	if result.Body == nil {
		return result.Values, nil
	}
	body, err := io.ReadAll(result.Body)
	if closeErr := result.Body.Close(); err == nil {
		err = closeErr
	}
	out := maps.Clone(result.Values)
	out[result.BodyKey] = string(body)
	return out, err
}

// must is try for calls that have to succeed.
func (b *bench) must(name string, a args) map[string]any {
	b.tb.Helper()
	out, err := b.try(name, a)
	if err != nil {
		b.tb.Fatalf("%s %v: %v", name, a, err)
	}
	return out
}

// wantFailure checks a tool's failure: its code and the message.
func wantFailure(tb testing.TB, err error, code tools.Code, message string) {
	tb.Helper()
	failure, ok := errors.AsType[*tools.Error](err)
	if !ok || failure.Code != code || failure.Message != message {
		tb.Errorf("got %#v (%v)\nwant code %s: %s", err, err, code, message)
	}
}

func entryNames(out map[string]any) []string {
	var names []string
	for _, e := range out["entries"].([]any) {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	return names
}

func matchLines(out map[string]any) []string {
	var lines []string
	for _, m := range out["matches"].([]any) {
		match := m.(map[string]any)
		lines = append(lines, match["path"].(string)+": "+match["text"].(string))
	}
	slices.Sort(lines)
	return lines
}
