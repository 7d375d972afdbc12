package formats

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// maxNoteBytes bounds a note, and maxPartBytes one record of it: a longer one is several.
const maxNoteBytes, maxPartBytes = 8 << 20, 64 << 10

// note is a text in Markdown with what stands in front of it.
type note struct {
	front map[string][]string
	body  string
}

// first is the first value of the first of some names that has one.
func (n note) first(names ...string) string {
	for _, name := range names {
		if all := n.front[name]; len(all) > 0 && all[0] != "" {
			return all[0]
		}
	}
	return ""
}

// note reads the file as a note.
func (f *file) note() (n note, err error) {
	bytes, err := io.ReadAll(io.LimitReader(f.from, maxNoteBytes+1))
	text := strings.TrimPrefix(string(bytes), "\ufeff")
	switch {
	case err != nil:
		return n, err
	case len(bytes) > maxNoteBytes:
		return n, fmt.Errorf("%w: the note is longer than %d bytes", ErrFormat, maxNoteBytes)
	}
	if strings.HasPrefix(text, "---\r\n") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if n.front, n.body, err = frontMatter(text); err != nil {
		return n, err
	}
	for at, r := range text {
		if r == 0 && n.first(recordID) == "" || r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)) {
			f.at = int64(at)
			return n, fmt.Errorf("%w: it is no text in UTF-8", ErrFormat)
		}
	}
	return n, nil
}

// readNote reads a note in Markdown.
func readNote(f *file, out *output) error {
	n, err := f.note()
	if err != nil {
		return err
	}
	if n.first(recordID) != "" {
		text, err := n.record()
		if err != nil {
			return err
		}
		return out.line(text)
	}
	title := cmp.Or(n.first("title"), strings.TrimSuffix(path.Base(f.name), path.Ext(f.name)))
	var at *time.Time
	for _, name := range []string{"created", "date", "created_at"} {
		given, _ := json.Marshal(n.first(name)) //nolint:errchkjson // a string
		at = first(at, when(given))
	}
	r := line{Metadata: map[string]any{"title": title}, CreateTime: at, EventTime: at, Tags: tags(slices.Concat(n.front["tags"], n.front["tag"]))}
	if link := n.first("permalink"); link != "" {
		r.Metadata["permalink"] = link
	}
	return out.note(f, n, title, r)
}

// note gives out the text of a note, under its title, in as many records as it takes.
func (o *output) note(f *file, n note, title string, r line) error {
	r.Metadata["source"], r.Metadata["path"] = o.source, f.name
	body := strings.TrimSpace(strings.ReplaceAll(n.body, "\r\n", "\n"))
	for i, part := range pieces(body, maxPartBytes) {
		r.ID, r.Text = o.noteID(part, f.name, fmt.Sprint(i)), part
		if title != "" && !strings.HasPrefix(strings.TrimLeft(part, "# "), title) {
			r.Text = "# " + title + "\n\n" + part
		}
		if err := o.record(r); err != nil {
			return err
		}
	}
	return nil
}

// noteID is the id of a text of a file, by the parts of its place. Where the import has another text
// from a folder of the same name, it is by the text, too.
func (o *output) noteID(text string, place ...string) string {
	id, sum := named(o.source, place...), sha256.Sum256([]byte(text))
	if before, ok := o.notes[id]; ok && before != sum {
		return named(o.source, append(place, text)...)
	}
	o.notes[id] = sum
	return id
}

// readRules reads a file of rules for agents as notes, and a skill as one.
func readRules(f *file, out *output) error {
	n, err := f.note()
	if err != nil {
		return err
	}
	if !strings.EqualFold(path.Base(f.name), "SKILL.md") {
		r := line{Kind: "note", Metadata: map[string]any{}}
		for _, name := range []string{"description", "globs"} {
			if said := strings.Join(n.front[name], ", "); said != "" {
				r.Metadata[name] = said
			}
		}
		return out.note(f, n, f.name, r)
	}
	about := map[string]any{
		"source": out.source, "path": f.name, "name": cmp.Or(n.first("name"), path.Base(path.Dir(f.name))), "description": n.first("description"),
	}
	body := strings.TrimSpace(n.body)
	metadata, err := json.Marshal(about)
	if _, ok := settings.SkillOf(body, "", metadata); !ok || err != nil || body == "" {
		return fmt.Errorf("%w: it has no text or no name of at most %d bytes, so it is no skill", ErrFormat, settings.MaxSkillNameBytes)
	}
	return out.record(line{ID: out.noteID(body, f.name), Text: body, Kind: settings.SkillKind, Metadata: about})
}

// frontMatter takes the lines between two --- off the beginning of a note, as far as they are
// names with a text, on one line or indented below, or with a list of texts; what else YAML knows
// is passed over.
func frontMatter(text string) (front map[string][]string, body string, err error) {
	front = map[string][]string{}
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return front, text, nil
	}
	head, body, ok := strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix("\n"+rest, "\n---"); !ok {
			return nil, "", fmt.Errorf("%w: the front matter that begins with --- does not end", ErrFormat)
		}
		body = ""
	}
	bare := func(value string) string { return strings.Trim(strings.TrimSpace(value), `"'`) }
	last, block, blocks := "", false, []string(nil)
	for _, l := range strings.Split(head, "\n") {
		if item, ok := strings.CutPrefix(strings.TrimSpace(l), "- "); ok && last != "" {
			front[last] = append(front[last], bare(item))
			continue
		}
		if block && strings.HasPrefix(l, " ") {
			front[last] = append(front[last], strings.TrimSpace(l))
			continue
		}
		block = false
		name, value, ok := strings.Cut(l, ":")
		if last = ""; !ok || strings.HasPrefix(l, " ") || strings.HasPrefix(l, "#") {
			continue
		}
		last = strings.ToLower(strings.TrimSpace(name))
		value = strings.TrimSpace(value)
		inner, isList := strings.CutPrefix(value, "[")
		inner, ended := strings.CutSuffix(inner, "]")
		var text string
		var texts []string
		switch {
		case slices.Contains([]string{">", ">-", "|", "|-"}, value):
			block, blocks = true, append(blocks, last)
		case json.Unmarshal([]byte(value), &text) == nil:
			front[last] = []string{text}
		case json.Unmarshal([]byte(value), &texts) == nil:
			front[last] = texts
		case isList && ended, value != "" && strings.HasPrefix(last, "tag"): // whose commas Obsidian takes, too
			for _, item := range strings.Split(inner, ",") {
				front[last] = append(front[last], bare(item))
			}
		case value != "":
			front[last] = append(front[last], bare(value))
		}
	}
	for _, name := range blocks {
		front[name] = []string{strings.Join(front[name], " ")}
	}
	return front, body, nil
}

// pieces cuts a text into pieces of at most so many bytes, between paragraphs where it can; none
// of an empty text.
func pieces(text string, most int) (all []string) {
	for len(text) > most {
		at := strings.LastIndex(text[:most], "\n\n")
		if at <= 0 {
			at = len(cut(text, most))
		}
		all, text = append(all, text[:at]), strings.TrimLeft(text[at:], "\n")
	}
	if text != "" {
		all = append(all, text)
	}
	return all
}
