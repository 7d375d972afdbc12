package hosts

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// savedFile is a file as it was before anything of ours was in it.
type savedFile struct {
	Path string
	// Before are its bytes, nil if there was no file.
	Before []byte
	// After is the digest of the written text.
	After string
	// Made are the folders that were made for it, the deepest first.
	Made []string
}

// wrote reports whether a text is the written one.
func (k savedFile) wrote(text []byte) bool { return text != nil && digest(text) == k.After }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keep is the file that remembers another file.
type keep struct{ path string }

// load returns what was kept, or nil.
func (k keep) load() (*savedFile, error) {
	text, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out savedFile
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, k.path, err)
	}
	return &out, nil
}

// save keeps a file, whole or not at all. Nobody else may read it: settings hold keys.
func (k keep) save(what savedFile) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	temporary := k.path + "." + rand.Text()[:8]
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = bytes.NewReader(text).WriteTo(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temporary, k.path)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

func (k keep) forget() error {
	if err := os.Remove(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
