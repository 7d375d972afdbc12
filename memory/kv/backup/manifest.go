package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// manifestFormat is the version of the manifests that this package writes and reads.
const manifestFormat = 1

// maxManifestBytes bounds a manifest that is read: some 300,000 files.
const maxManifestBytes = 64 << 20

// nameForm is the time of a backup as its name, in UTC.
const nameForm = "20060102T150405.000Z"

// MaxNameBytes bounds the name of a backup.
const MaxNameBytes = len("20261123T174500.123Z")

var validName = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z$`)

const (
	manifestSuffix = ".json"
	partialSuffix  = ".partial"
)

// Errors of backups.
var (
	// ErrNotFound: there is no such backup.
	ErrNotFound = errors.New("backup: not found")
	// ErrDamaged: a file of a backup is not what it was when it was made.
	ErrDamaged = errors.New("backup: damaged")
	// ErrBusy: somebody else changes the folder of backups.
	ErrBusy = errors.New("backup: another backup is being made or removed")
)

// Backup is one copy of a store.
type Backup struct {
	// Name is the time at which it was begun, such as 20261123T174500.123Z.
	Name string `json:"name"`
	// Time is when it was begun.
	Time time.Time `json:"create_time"`
	// StoreFormat is the version of the format of the store on disk, and Version that of the
	// server that made the backup.
	StoreFormat int    `json:"store_format"`
	Version     string `json:"server_version"`
	// Bytes is the size of all its files, NewBytes of the files that the previous backup
	// did not have.
	Bytes    int64 `json:"bytes"`
	NewBytes int64 `json:"new_bytes"`
	// Files are its files, by name.
	Files []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Source identifies the file of the store that it was copied from;
	// empty for files that change.
	Source string `json:"source,omitempty"`
}

// manifest is what lies on disk.
type manifest struct {
	Format int `json:"format"`
	Backup
	// SHA256 is that of the manifest with this field empty.
	SHA256 string `json:"sha256"`
}

func (m manifest) encode() ([]byte, error) {
	m.SHA256 = ""
	bare, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(bare)
	m.SHA256 = hex.EncodeToString(sum[:])
	return json.MarshalIndent(m, "", " ")
}

// read reads the manifest of a backup.
func (f *Folder) read(name string) (Backup, error) {
	if !validName.MatchString(name) {
		return Backup{}, fmt.Errorf("%w: %q is no name of a backup", ErrNotFound, name)
	}
	path := f.manifestOf(name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Backup{}, fmt.Errorf("%w: %s", ErrNotFound, name)
	case err != nil:
		return Backup{}, err
	case info.Size() > maxManifestBytes:
		return Backup{}, fmt.Errorf("%w: %s has %d bytes", ErrDamaged, path, info.Size())
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return Backup{}, err
	}
	var m manifest
	if err := json.Unmarshal(written, &m); err != nil {
		return Backup{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	if m.Format != manifestFormat {
		return Backup{}, fmt.Errorf("backup: %s has format %d, this server reads %d", path, m.Format, manifestFormat)
	}
	expected, err := m.encode()
	if err != nil {
		return Backup{}, err
	}
	if string(expected) != string(written) || m.Name != name {
		return Backup{}, fmt.Errorf("%w: %s has changed since it was written", ErrDamaged, path)
	}
	for _, file := range m.Files {
		if file.Name != filepath.Base(file.Name) || strings.HasPrefix(file.Name, ".") {
			return Backup{}, fmt.Errorf("%w: %s names the file %q", ErrDamaged, path, file.Name)
		}
	}
	return m.Backup, nil
}

// List returns the backups, the newest first. One whose manifest can't be read is left out,
// and the error names it.
func (f *Folder) List() ([]Backup, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var found []Backup
	var errs []error
	for _, name := range names {
		b, err := f.read(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, b)
	}
	return found, errors.Join(errs...)
}

// names returns the names of the backups that have a manifest, newest first.
func (f *Folder) names() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), manifestSuffix); ok && validName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}
