package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// previewing is a preview that sees of the workspace what the call may see.
func previewing(preview tools.Preview) tools.Preview {
	if preview == nil {
		return nil
	}
	return func(ctx context.Context, c tools.Input) ([]tools.PreviewPart, error) {
		return preview(context.WithValue(ctx, guardKey{}, guard{hide: c.Profile.Hide, closed: c.Closed}), c)
	}
}

// preview shows where the path of a file tool leads and, of one that changes something, what is
// there.
func (f *files) preview(changes, noFollow bool) tools.Preview {
	return func(ctx context.Context, c tools.Input) ([]tools.PreviewPart, error) {
		name := c.String("path", ".")
		if _, in := inside(c.Root, name); !in && path.IsAbs(name) {
			place, err := real(name)
			if err != nil {
				return nil, errTraversal()
			}
			return part("path", "leads to %q, outside of the workspace\n", place), nil
		}
		p, err := f.find(ctx, c.Root, name, want{noFollow: noFollow})
		if failure, ok := errors.AsType[*tools.Error](err); ok && failure.Code == tools.NotFound {
			return part("path", "nothing is at %q yet, nor is its folder\n", name), nil
		}
		if err != nil {
			return nil, err
		}
		defer p.close()
		switch {
		case p.info == nil:
			return part("path", "leads to %q, where nothing is yet\n", p.rel), nil
		case !changes || !p.info.Mode().IsRegular():
			return part("path", "leads to %q, %s\n", p.rel, sortOf(p.info)), nil
		}
		sum, err := hashTarget(ctx, p)
		if err != nil {
			return nil, failure(name, err)
		}
		return part("path", "leads to %q, which has %d bytes, SHA-256 %s\n", p.rel, p.info.Size(), sum), nil
	}
}

func sortOf(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "a folder"
	case info.Mode().IsRegular():
		return "a file"
	}
	return "neither a file nor a folder"
}

func part(name, format string, args ...any) []tools.PreviewPart {
	return []tools.PreviewPart{{Name: name, Content: fmt.Appendf(nil, format, args...)}}
}

// preview shows the command that a call runs, its input, and the files that it names.
func (s *shell) preview(read commandForm) tools.Preview {
	return func(ctx context.Context, c tools.Input) ([]tools.PreviewPart, error) {
		cmd, err := s.command(ctx, c, read)
		if err != nil {
			return nil, err
		}
		return s.commandParts(ctx, c, cmd)
	}
}

func (s *shell) commandParts(ctx context.Context, c tools.Input, cmd command) ([]tools.PreviewPart, error) {
	cwd, err := s.folder(ctx, c)
	if err != nil {
		return nil, err
	}
	var parts []tools.PreviewPart
	if cmd.line != "" {
		parts = append(parts, tools.PreviewPart{Name: "command line", Content: []byte(cmd.line)})
	} else {
		var quoted strings.Builder
		for i, word := range cmd.argv {
			fmt.Fprintf(&quoted, "argv[%d] %q\n", i, word)
		}
		parts = append(parts, tools.PreviewPart{Name: "command", Content: []byte(quoted.String())})
	}
	parts = append(parts, part("folder", "%q of the workspace\nWhat else the command reads or starts is not shown.\n", cwd)...)
	if stdin, ok := c.Args["stdin"].(string); ok {
		parts = append(parts, tools.PreviewPart{Name: "standard input", Content: []byte(stdin)})
	}
	places, err := placesOf(c)
	if err != nil {
		return nil, err
	}
	parts = append(parts, places...)
	files, err := s.startedFiles(ctx, c, cwd, cmd)
	return append(parts, files...), err
}

// placesOf returns the places of the argument needs, with links resolved.
func placesOf(c tools.Input) (parts []tools.PreviewPart, err error) {
	asked, _ := c.Args["needs"].(map[string]any)
	for _, key := range []string{policy.KindRead, policy.KindWrite} {
		list, _ := asked[key].([]any)
		for _, one := range list {
			name, _ := one.(string)
			place, err := filepath.EvalSymlinks(name)
			if err != nil {
				return nil, tools.Errorf(tools.NotFound, "File not found: %s", name)
			}
			parts = append(parts, part("place to "+key, "%q leads to %q\n", name, place)...)
		}
	}
	return parts, nil
}

// readByDefault are files that programs follow without naming them.
var readByDefault = map[string][]string{
	"make": {"GNUmakefile", "makefile", "Makefile"}, "cmake": {"CMakeLists.txt"},
	"npm": {"package.json"}, "cargo": {"Cargo.toml", "build.rs"},
}

// maxNamed bounds the words of a command that are looked for in the workspace.
const maxNamed = 256

// startedFiles are the files of the workspace that a command names: programs, scripts, input.
func (s *shell) startedFiles(ctx context.Context, c tools.Input, cwd string, cmd command) ([]tools.PreviewPart, error) {
	words, folders := cmd.files, []string{cwd}
	for i, word := range words {
		words = append(words, readByDefault[path.Base(word)]...)
		if i > 0 && words[i-1] == "cd" {
			folders = append(folders, path.Join(cwd, word), path.Join(folders[len(folders)-1], word))
		}
		if _, value, ok := strings.Cut(word, "="); ok {
			words = append(words, value)
		}
	}
	var parts []tools.PreviewPart
	looked := 0
	for _, word := range words {
		if word == "" || len(word) > MaxPathBytes {
			continue
		}
		for _, folder := range slices.Compact(folders) {
			if looked++; looked > maxNamed {
				return nil, tools.TooLong("the list of its words", int64(len(words)))
			}
			name := word
			if !path.IsAbs(name) {
				name = path.Join(folder, name)
			}
			p, ok, err := s.filePart(ctx, c, name)
			if err != nil {
				return nil, err
			}
			if ok && !slices.ContainsFunc(parts, func(have tools.PreviewPart) bool { return have.Name == p.Name }) {
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// filePart returns a file of the workspace with all its content; false if there is no such
// file. For a compiled program, whose bytes mean nothing to a person, it returns the hash.
func (s *shell) filePart(ctx context.Context, c tools.Input, name string) (tools.PreviewPart, bool, error) {
	file, info, rel, err := s.files.open(ctx, c.Root, name)
	if ctx.Err() != nil {
		return tools.PreviewPart{}, false, ctx.Err()
	}
	if err != nil {
		return tools.PreviewPart{}, false, nil // the command will find none there, either
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, tools.MaxPreviewBytes+1))
	if err != nil {
		return tools.PreviewPart{}, false, failure(name, err)
	}
	out := tools.PreviewPart{Name: "file " + rel, Content: content}
	switch {
	case bytes.HasPrefix(content, []byte("\x7fELF")):
		sum, err := hash(ctx, io.MultiReader(bytes.NewReader(content), file))
		if err != nil {
			return out, false, failure(name, err)
		}
		out.Content = fmt.Appendf(nil, "a compiled program of %d bytes, SHA-256 %s\n", info.Size(), sum)
	case len(content) > tools.MaxPreviewBytes:
		return out, false, tools.TooLong(rel, info.Size())
	}
	return out, true, readable(rel, out.Content)
}

// cookie is the line by which a Python script says its encoding (PEP 263).
var cookie = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)

// readable returns an error for a script whose bytes mean another text than they show.
func readable(name string, content []byte) error {
	lines := bytes.SplitN(bytes.ReplaceAll(content, []byte("\r"), []byte("\n")), []byte("\n"), 4)
	for _, line := range lines[:min(3, len(lines))] {
		found := cookie.FindSubmatch(line)
		if found == nil {
			continue
		}
		switch encoding := strings.ToLower(strings.ReplaceAll(string(found[1]), "_", "-")); {
		case strings.HasPrefix(encoding, "utf-8"), strings.HasPrefix(encoding, "latin-1"), strings.HasPrefix(encoding, "iso-8859-"),
			slices.Contains([]string{"utf8", "ascii", "us-ascii", "latin1", "cp1252", "windows-1252"}, encoding):
		default:
			return tools.Errorf(tools.PermissionDenied, "Permission denied: %s is written in the encoding %s, which can't be shown to the person who has to approve it; save it as UTF-8", name, found[1])
		}
	}
	return nil
}

// previewScript shows the script as it will run.
func (s *shell) previewScript(ctx context.Context, c tools.Input) ([]tools.PreviewPart, error) {
	call, err := s.scriptCall(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(call.request.Bytes) > tools.MaxPreviewBytes {
		return nil, tools.TooLong(call.rel, int64(len(call.request.Bytes)))
	}
	parts := part("folder", "the workspace\nWhat the script imports or starts is not shown.\n")
	places, err := placesOf(c)
	if err != nil {
		return nil, err
	}
	parts = append(parts, places...)
	parts = append(parts, tools.PreviewPart{Name: scriptPart(call.rel), Content: call.request.Bytes})
	return parts, readable(call.rel, call.request.Bytes)
}

// scriptPart names the part that has the script at a path.
func scriptPart(rel string) string { return "script " + rel }
