package formats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFiles bounds the files of a folder.
const maxFiles = 200_000

// file is a file that is read.
type file struct {
	path string
	// name is the path with the folder that was given, or that it lies in, in slashes: however the
	// folder is named on the way there.
	name string
	from io.Reader
	at   int64 // where the value that is read now begins, or what stands before it
}

// noLine is where a file is read that has no lines.
const noLine = -1

// filesOf are the files that a path stands for: itself, or those of a folder whose names fit one
// of the format's patterns, in order. Links are not followed; folders of programs' own,
// which are hidden or hold what packages bring, and empty files, such as killed programs leave, are passed over.
func (f Format) filesOf(path string) (all []file, err error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []file{{path: path, name: filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(whole)), filepath.Base(whole)))}}, nil
	}
	root, err := filepath.EvalSymlinks(whole) // the folder itself may be a link
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && at != root && (name == "node_modules" || name == ".git" || strings.HasPrefix(name, ".") && !f.hidden):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !f.takes(name):
			return nil
		case len(all) == maxFiles:
			return fmt.Errorf("%s has more than %d files", path, maxFiles)
		}
		if info, err := entry.Info(); err != nil || info.Size() == 0 {
			return err
		}
		name, err = filepath.Rel(root, at)
		all = append(all, file{path: filepath.Join(path, name), name: filepath.ToSlash(filepath.Join(filepath.Base(whole), name))})
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no files %s", path, f.names)
	}
	return all, err
}

// takes reports whether a file of a folder is of the format, by its name in letters of any case.
func (f Format) takes(name string) bool {
	for pattern := range strings.FieldsSeq(strings.ToLower(f.names)) {
		if ok, err := filepath.Match(pattern, strings.ToLower(name)); ok && err == nil {
			return !strings.HasPrefix(name, ".")
		}
	}
	return false
}

// read reads the file as a format.
func (f *file) read(as Format, out *output) error {
	from, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	f.from = from
	err = as.read(f, out)
	if err == nil {
		return nil
	}
	if other, ok := errors.AsType[*takeError](err); ok {
		return other.err
	}
	return &FileError{f.path, f.line(), err}
}

// takeError is an error of who takes the lines, which is no fault of a file.
type takeError struct{ err error }

func (e *takeError) Error() string { return e.err.Error() }

// line is the line on which what is read now begins, from 1; 0 in a database.
func (f *file) line() int {
	if f.at == noLine {
		return 0
	}
	from, err := os.Open(f.path)
	if err != nil {
		return 1
	}
	defer func() { _ = from.Close() }() // it was only read
	in := bufio.NewReader(from)
	line := 1
	for at := int64(0); ; at++ {
		b, err := in.ReadByte()
		if err != nil || at >= f.at && !bytes.ContainsRune([]byte(" \t\r\n,[\xef\xbb\xbf"), rune(b)) {
			return line
		}
		if b == '\n' {
			line++
		}
	}
}

// bounded reads at most so many bytes more.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it is longer than %d bytes", ErrFormat, MaxValueBytes)
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// values calls do with each JSON value of the file: the items of a list, or values that follow each
// other, such as lines. A file without any is an error.
func (f *file) values(do func(value json.RawMessage) error) error {
	in := bufio.NewReader(f.from)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(len(mark)) // which were read
		f.at = int64(len(mark))
	}
	start := f.at
	limited := &bounded{from: in}
	d := json.NewDecoder(limited)
	isList := f.list(in)
	limited.left = MaxValueBytes
	if isList {
		if _, err := d.Token(); err != nil {
			return broken(err)
		}
	}
	for n := 0; ; n++ {
		limited.left = MaxValueBytes
		f.at = start + d.InputOffset()
		if isList && !d.More() {
			if _, err := d.Token(); err != nil {
				return broken(err)
			}
			f.at = start + d.InputOffset()
			if _, err := d.Token(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: more stands behind the list", ErrFormat)
			}
			return nil
		}
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: the file is empty", ErrFormat)
		case err != nil:
			return broken(err)
		}
		if err := do(value); err != nil {
			return err
		}
	}
}

// list reports whether the first value of in is a list.
func (*file) list(in *bufio.Reader) bool {
	for n := 1; n <= in.Size(); n++ {
		ahead, err := in.Peek(n)
		if err != nil {
			return false
		}
		if b := ahead[n-1]; !bytes.ContainsRune([]byte(" \t\r\n"), rune(b)) {
			return b == '['
		}
	}
	return false
}

func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file is cut off in it", ErrFormat)
	}
	if errors.Is(err, ErrFormat) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// decode reads a value into what a format knows of it.
func decode(value json.RawMessage, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}
