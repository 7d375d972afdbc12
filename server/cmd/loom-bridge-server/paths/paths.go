// Package paths compares places of the file system, links followed.
package paths

import (
	"errors"
	"os"
	"path/filepath"
)

// Within reports whether a path, which need not exist, is a directory or lies in
// it, links followed.
func Within(path, dir string) (bool, error) {
	dir, err := Resolved(dir)
	if err != nil {
		return false, err
	}
	path, err = Resolved(path)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel), err
}

// Resolved is a path without links, as far as it exists.
func Resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		found, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}
