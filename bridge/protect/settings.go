package protect

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// maxSettings bounds a file of git's settings that is followed.
	maxSettings = 1 << 20
	// maxIncludes bounds files that include each other.
	maxIncludes = 8
)

// setting is one of git's.
type setting struct{ section, sub, key, value string }

// places are settings whose value is a file or a folder from which commands are taken.
var places = map[string]bool{
	"core.hookspath": true, "core.attributesfile": true, "include.path": true, "includeif.path": true, "init.templatedir": true,
}

// programs are settings whose value is a command line.
var programs = map[string]bool{
	"core.fsmonitor": true, "core.sshcommand": true, "core.editor": true, "core.pager": true, "core.askpass": true, "core.gitproxy": true,
	"core.alternaterefscommand": true, "sequence.editor": true, "credential.helper": true, "gpg.program": true, "diff.external": true,
	"diff.command": true, "diff.textconv": true, "filter.clean": true, "filter.smudge": true, "filter.process": true, "merge.driver": true,
	"difftool.cmd": true, "mergetool.cmd": true, "difftool.path": true, "mergetool.path": true, "interactive.difffilter": true,
	"pager.*": true, "alias.*": true, "uploadpack.packobjectshook": true, "sendemail.sendmailcmd": true, "web.browser": true,
	"browser.cmd": true, "browser.path": true, "man.cmd": true, "man.path": true, "trailer.command": true, "trailer.cmd": true,
	"submodule.update": true, "remote.uploadpack": true, "remote.receivepack": true, "remote.vcs": true, "hook.command": true,
	"imap.tunnel": true,
}

func readSettings(file *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxSettings))
}

// settings follows a file of the workspace. repository is the folder that its paths are
// relative to.
func (w *workspace) settings(name, repository string, depth int) {
	text, err := readSettings(w.root.Open(name))
	if err != nil {
		return
	}
	w.follow(text, filepath.Join(w.root.Name(), path.Dir(name)), repository, depth)
}

// follow adds what settings name. dir is where their file lies.
func (w *workspace) follow(text []byte, dir, repository string, depth int) {
	for _, s := range parse(string(text)) {
		key := s.section + "." + s.key
		switch {
		case places[key]:
			from := filepath.Join(w.root.Name(), repository)
			if s.section == "include" || s.section == "includeif" {
				from = dir
			}
			rel := w.named(s.value, from)
			if rel == "" {
				continue
			}
			w.add(rel)
			w.behind(rel)
			if strings.HasPrefix(s.section, "include") && depth < maxIncludes {
				w.settings(rel, repository, depth+1)
			}
		case programs[key] || programs[s.section+".*"]:
			w.program(s.value, repository)
		}
	}
}

// program adds the files of the workspace that a command line names.
func (w *workspace) program(line, repository string) {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\"'!;&|()<>=`$", r) }) {
		rel := w.named(word, filepath.Join(w.root.Name(), repository))
		if rel == "" {
			continue
		}
		if info, err := w.root.Stat(rel); err == nil && info.IsDir() {
			continue // a folder that is worked on is no program
		} else if err != nil && !strings.Contains(word, "/") {
			continue // a word
		}
		w.add(rel)
		w.behind(rel)
	}
}

// named returns a path in settings as a name in the workspace; empty if it is outside.
func (w *workspace) named(value, from string) string {
	if value == "" || strings.ContainsAny(value, "\x00*") || strings.HasPrefix(value, "-") {
		return ""
	}
	value = strings.TrimPrefix(value, "%(prefix)/")
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		value = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(from, value)
	}
	abs, err := filepath.Abs(value)
	if err != nil {
		return ""
	}
	return w.relative(abs)
}

// parse reads settings as git does: sections, their parts, quotes, comments, and lines that go
// on. What is no setting is passed over.
func parse(text string) []setting {
	var all []setting
	var section, sub string
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for strings.HasPrefix(line, "[") {
			end := closing(line)
			if end < 0 {
				break
			}
			name := line[1:end]
			section, sub, _ = strings.Cut(name, " ")
			sub = strings.Trim(strings.TrimSpace(sub), `"`)
			if first, rest, ok := strings.Cut(section, "."); ok { // the old form
				section, sub = first, rest
			}
			section = strings.ToLower(section)
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' || line[0] == '[' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		all = append(all, setting{section, sub, strings.ToLower(strings.TrimSpace(key)), unquoted(strings.TrimSpace(value))})
	}
	return all
}

// closing is where the head of a section ends: a bracket in quotes ends none.
func closing(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ']' && !quoted:
			return i
		}
	}
	return -1
}

// unquoted is a value without its quotes and the comment behind it.
func unquoted(value string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			i++
			letter, ok := map[byte]byte{'n': '\n', 't': '\t', 'b': '\b'}[value[i]]
			if !ok {
				letter = value[i]
			}
			b.WriteByte(letter)
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}
