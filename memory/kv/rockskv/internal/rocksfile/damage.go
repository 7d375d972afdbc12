package rocksfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// DamageError is a file that is not what it should be.
type DamageError struct {
	// File is its name in the directory of the store.
	File string
	// Offset is where the damage begins, in bytes from the start of the file; -1
	// when it is the file as a whole, which is missing or too short.
	Offset int64
	// Problem says what is wrong.
	Problem string
}

func (d *DamageError) Error() string { return d.File + " " + d.Text() }

// Text is Problem with its place.
func (d *DamageError) Text() string {
	if d.Offset < 0 {
		return d.Problem
	}
	return fmt.Sprintf("at byte %d: %s", d.Offset, d.Problem)
}

func damaged(file string, offset int64, format string, args ...any) *DamageError {
	return &DamageError{File: file, Offset: offset, Problem: fmt.Sprintf(format, args...)}
}

// LogName is the name of a log by its number.
func LogName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// TableName is the name of a table file by its number.
func TableName(number uint64) string { return fmt.Sprintf("%06d.sst", number) }

// BlobName is the name of a blob file by its number.
func BlobName(number uint64) string { return fmt.Sprintf("%06d.blob", number) }

// ManifestName is the name of a manifest by its number.
func ManifestName(number uint64) string { return fmt.Sprintf("MANIFEST-%06d", number) }

// Logs returns the numbers of the logs in dir, in ascending order.
func Logs(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok || e.IsDir() {
			continue
		}
		if number, err := strconv.ParseUint(name, 10, 64); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers) // names sort otherwise from a million on
	return numbers, nil
}

// Current returns the number of the manifest that the file CURRENT names.
func Current(dir string) (uint64, error) {
	const name, most = "CURRENT", 64
	text, err := readSmall(filepath.Join(dir, name), most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, damaged(name, -1, "is missing")
	case err != nil:
		return 0, err
	}
	digits, named := strings.CutPrefix(string(text), "MANIFEST-")
	digits, ended := strings.CutSuffix(digits, "\n")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !named || !ended || ManifestName(number) != "MANIFEST-"+digits {
		return 0, damaged(name, 0, "does not name a manifest")
	}
	return number, nil
}

// readSmall reads a file of which more than most bytes are of no interest.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// openSized opens a file that must have a size.
func openSized(dir, name string, size int64) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(name, -1, "is missing")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = damaged(name, -1, "has %d bytes, and should have %d", info.Size(), size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
