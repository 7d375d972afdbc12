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
	// name is the path below the folder that was given, in slashes; of a file that was given its
	// own name.
	name string
	from io.Reader
	at   int64 // where the value that is read now begins, or what stands before it
}

// filesOf finds the files of a folder that have a suffix, in order of their names, without
// hidden ones. Links are not followed. A file stands for itself.
func filesOf(path, suffix string) (all []file, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []file{{path: path, name: filepath.Base(path)}}, nil
	}
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case at != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || !strings.EqualFold(filepath.Ext(at), suffix):
			return nil
		case len(all) == maxFiles:
			return fmt.Errorf("%s has more than %d files %s", path, maxFiles, suffix)
		}
		name, err := filepath.Rel(path, at)
		all = append(all, file{path: at, name: filepath.ToSlash(name)})
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no files %s", path, suffix)
	}
	return all, err
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

// line is the line on which what is read now begins, from 1.
func (f *file) line() int {
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
