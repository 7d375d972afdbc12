package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/native/charset"
	"github.com/loom-bridge/loom-bridge/bridge/native/edit"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

const editSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"File to change, relative to the workspace"},
"old_string":{"type":"string","description":"Text to replace, exactly as it stands in the file; it must stand there once, unless replace_all is true. Empty, for a file that is not there: the file is made"},
"new_string":{"type":"string","description":"Text to put in its place"},
"replace_all":{"type":"boolean","description":"Replace it wherever it stands (default false)"},
"edits":{"type":"array","maxItems":200,"description":"Several edits in place of one, made in order, all or none","items":{"type":"object","properties":{
"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old_string","new_string"]}},
"dry_run":{"type":"boolean","description":"Show the diff and change nothing (default false)"},
"expected_sha256":{"type":"string","description":"Change nothing unless the file has this hash, as stat and earlier edits told it"},
"encoding":{"type":"string","description":"Encoding of the file (default: found out), such as utf-8, utf-16, latin-1, windows-1251"}},
"required":["path"]}`

// change is what a call asks to do with a file.
type change struct {
	name     string
	edits    []edit.Edit
	create   bool // the file is not there yet
	dry      bool
	expected string
	encoding *charset.Encoding // nil: as the file is
}

func (f *files) editFile(ctx context.Context, c tools.Input) (tools.Output, error) {
	want, err := changeOf(c)
	if err != nil {
		return tools.Output{}, err
	}
	for range maxRaces {
		out, err := f.change(ctx, c.Root, want)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, errRaced) {
			return tools.Output{}, failure(want.name, err)
		}
	}
	return tools.Output{}, failure(want.name, errRaced)
}

// changeOf reads the arguments of an edit.
func changeOf(c tools.Input) (change, error) {
	want := change{name: c.String("path", ""), dry: c.Bool("dry_run"), expected: strings.ToLower(c.String("expected_sha256", ""))}
	list, hasList := c.Args["edits"].([]any)
	_, hasOld := c.Args["old_string"]
	_, hasNew := c.Args["new_string"]
	switch {
	case hasList && (hasOld || hasNew):
		return want, refuse("edits", "must not be combined with old_string and new_string")
	case hasList && len(list) == 0:
		return want, refuse("edits", "is empty")
	case !hasList && !hasOld:
		return want, refuse("old_string", "is required")
	case !hasList && !hasNew:
		return want, refuse("new_string", "is required")
	case !hasList:
		list = []any{c.Args}
	}
	for i, item := range list {
		in := tools.Input{Args: item.(map[string]any)} // by the schema
		e := edit.Edit{Old: in.String("old_string", ""), New: in.String("new_string", ""), All: in.Bool("replace_all")}
		place := "old_string"
		if hasList {
			place = fmt.Sprintf("edits[%d].old_string", i)
		}
		switch {
		case e.Old == e.New && e.Old != "":
			return want, refuse(place, "is the same as new_string")
		case e.Old == "" && i > 0:
			return want, refuse(place, "must not be empty")
		}
		want.create = want.create || e.Old == ""
		want.edits = append(want.edits, e)
	}
	var err error
	want.encoding, err = encodingOf(c)
	return want, err
}

// encodingOf reads the argument that names an encoding; nil without one.
func encodingOf(c tools.Input) (*charset.Encoding, error) {
	name := c.String("encoding", "")
	if name == "" {
		return nil, nil
	}
	e, err := charset.Named(name)
	if err != nil {
		return nil, refuse("encoding", "is not known; utf-8, utf-16, latin-1, windows-1252 and shift_jis are, for example")
	}
	return &e, nil
}

// change makes one attempt.
func (f *files) change(ctx context.Context, root *os.Root, w change) (tools.Output, error) {
	// Folders are made only for a file that is made.
	p, err := f.find(ctx, root, w.name, want{parents: w.create && !w.dry})
	if e, ok := errors.AsType[*tools.Error](err); ok && e.Code == tools.NotFound && w.create && w.dry && w.expected == "" {
		out, _, err := w.preview(edited{}, false, w.name)
		return tools.Output{Values: out}, err
	}
	if err != nil {
		return tools.Output{}, err
	}
	defer p.close()
	defer f.locks.lock(p.rel)()
	if err := p.look(); err != nil {
		return tools.Output{}, err
	}
	before, err := readEdited(p, w)
	if err != nil {
		return tools.Output{}, err
	}
	if err := checkDigest(w.name, before.content, p.info != nil, w.expected); err != nil {
		return tools.Output{}, err
	}
	out, content, err := w.preview(before, p.info != nil, p.rel)
	if err != nil || w.dry {
		return tools.Output{Values: out}, err
	}
	if err := ctx.Err(); err != nil {
		return tools.Output{}, err
	}
	if err := p.same(); err != nil {
		return tools.Output{}, err
	}
	if err := hasRoom(ctx, p, len(content)); err != nil {
		return tools.Output{}, err
	}
	if err := replace(p, content); err != nil {
		return tools.Output{}, err
	}
	return tools.Output{Values: out, Written: &tools.Written{File: p.rel, SHA256: sha256Of(content)}}, nil
}

// preview says what a change makes of a file, and the bytes to write.
func (w change) preview(before edited, there bool, rel string) (out map[string]any, content []byte, err error) {
	text, replaced, err := w.apply(before.text, there)
	if err != nil {
		return nil, nil, err
	}
	if content, err = before.encode(text, w); err != nil {
		return nil, nil, err
	}
	diff, cut := edit.Diff(rel, before.text, text, maxDiffBytes)
	out = map[string]any{
		"success": true, "path": w.name, "replacements": int64(replaced), "diff": diff, "sha256": sha256Of(content),
	}
	if cut {
		out["diff_truncated"] = true
	}
	if w.dry {
		out["dry_run"] = true
	}
	before.encoding.addTo(out)
	return out, content, nil
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// edited is a file as it was before.
type edited struct {
	content  []byte
	text     string
	encoding encoded
}

// readEdited reads a file that is to be changed. A missing one is empty, if it is to be
// made.
func readEdited(p *target, want change) (edited, error) {
	if p.info == nil && want.create {
		e := edited{}
		if want.encoding != nil {
			e.encoding.Encoding = *want.encoding
		}
		return e, nil
	}
	if p.info != nil && p.info.Mode().IsRegular() && p.info.Size() > MaxEditBytes {
		return edited{}, tools.Errorf(tools.TooLarge, "%s has %d bytes, more than the limit of %d for an edit; change it with a program, such as sed",
			want.name, p.info.Size(), MaxEditBytes)
	}
	file, _, err := openRegular(p, os.O_RDONLY)
	if err != nil {
		return edited{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxEditBytes+1))
	if err != nil {
		return edited{}, err
	}
	if len(content) > MaxEditBytes {
		return edited{}, errRaced // it grew
	}
	return decodeEdited(content, want)
}

// decodeEdited returns the text of a file. What can't be written again as it is, is refused.
func decodeEdited(content []byte, want change) (edited, error) {
	e := edited{content: content}
	isText := true
	if want.encoding != nil {
		e.encoding.Encoding = *want.encoding
	} else {
		e.encoding.Encoding, isText = charset.Detect(content, true)
	}
	if !isText {
		return e, tools.Errorf(tools.Failed, "%s is binary, not text: name its encoding if it is text all the same, or change it with a program by system:shell", want.name)
	}
	text, err := e.encoding.Decode(content)
	if err == nil {
		var again []byte
		if again, err = e.encoding.Encode(text); err == nil && string(again) != string(content) {
			err = errors.New("not of that encoding")
		}
	}
	if err != nil {
		return e, tools.Errorf(tools.Failed, "%s holds bytes that are not %s: name its encoding", want.name, e.encoding.Name())
	}
	e.text = text
	return e, nil
}

// apply makes the edits. The first one may make the file.
func (w change) apply(text string, there bool) (string, int, error) {
	edits := w.edits
	made := 0
	if w.create {
		if text != "" {
			return "", 0, tools.Errorf(tools.Failed, "%s is there and not empty: old_string must say which text to replace", w.name)
		}
		if text, edits = edits[0].New, edits[1:]; there {
			made = 1
		}
	}
	after, replaced, err := edit.Apply(text, edits, MaxEditBytes)
	if err != nil {
		code := tools.Failed
		if _, long := errors.AsType[*edit.TooLongError](err); long {
			code = tools.TooLarge
		}
		return "", 0, wrapped(code, w.name+": "+err.Error(), err)
	}
	return after, replaced + made, nil
}

// encode writes the text as the file was written. A guess of the encoding is good enough
// for characters that the file had already: those the caller has seen.
func (e edited) encode(text string, w change) ([]byte, error) {
	content, err := e.encoding.Encode(text)
	if err != nil {
		return nil, tools.Errorf(tools.Failed, "%s: %s", w.name, err)
	}
	if e.encoding.Guessed() {
		for _, r := range text {
			if r >= 0x80 && !strings.ContainsRune(e.text, r) {
				return nil, tools.Errorf(tools.Failed, "%s seems to be %s, but nothing in it says so: name its encoding to write %q", w.name, e.encoding.Name(), r)
			}
		}
	}
	return content, nil
}

// encoded is an encoding that results name.
type encoded struct{ charset.Encoding }

// addTo adds the encoding to a result, if it is not the usual one.
func (e encoded) addTo(out map[string]any) {
	if e.Plain() {
		return
	}
	out["encoding"] = e.Name()
	if e.Guessed() {
		out["encoding_guessed"] = true
	}
}

// checkDigest compares a file with the hash that the caller saw; an empty one is any.
func checkDigest(name string, content []byte, there bool, expected string) error {
	if expected == "" {
		return nil
	}
	if !there {
		return fs.ErrNotExist
	}
	if sum := sha256Of(content); sum != expected {
		return changed(name, sum)
	}
	return nil
}

// changed is the failure when a file is not as the caller saw it.
func changed(name, sum string) error {
	return tools.Errorf(tools.Failed, "%s was changed since it was read: its sha256 is %s; nothing was written, read it again", name, sum)
}

// same makes sure that what is at the target has not changed since it was looked at, by
// its identity, size and time: programs outside do not take these locks.
func (p *target) same() error {
	seen := p.info
	if err := p.look(); err != nil {
		return err
	}
	if (seen == nil) != (p.info == nil) {
		return errRaced
	}
	if seen != nil && (!os.SameFile(seen, p.info) || seen.Size() != p.info.Size() || !seen.ModTime().Equal(p.info.ModTime())) {
		return errRaced
	}
	return nil
}
