package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// journal keeps on disk what protected paths were before the programs that run, a file for
// each workspace, so that a server that is killed meanwhile puts them back when it starts
// again. It is not synced: what it guards against ends processes, not the machine.
type journal struct{ dir string }

// journalled is a workspace in the journal.
type journalled struct {
	Workspace string
	Dev, Ino  uint64 // of the workspace's folder
	Tenant    string // of the first program
	Agent     string
	Paths     map[string]journalledPath
}

type journalledPath struct {
	Whole   bool
	Entries []journalledEntry
}

type journalledEntry struct {
	Rel      string
	Mode     fs.FileMode
	UID, GID uint32
	Modified time.Time
	Content  []byte `json:",omitempty"`
	Target   string `json:",omitempty"`
}

// openJournal opens the one in a folder; nil without a folder.
func openJournal(dir string) (*journal, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("protect: %w", err)
	}
	return &journal{dir}, nil
}

func (j *journal) file(workspace string) string {
	name := sha256.Sum256([]byte(workspace))
	return filepath.Join(j.dir, hex.EncodeToString(name[:16])+".json")
}

// write replaces what is kept of a workspace.
func (j *journal) write(root *os.Root, of kv.Scope, paths map[string]*kept) error {
	if j == nil {
		return nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	s := stampOf(info)
	all := journalled{Workspace: root.Name(), Dev: s.dev, Ino: s.ino, Tenant: of.Tenant, Agent: of.Owner, Paths: make(map[string]journalledPath, len(paths))}
	for name, k := range paths {
		all.Paths[name] = journalPath(k.before)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	file := j.file(root.Name())
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// forget removes what is kept of a workspace in which nothing runs any more.
func (j *journal) forget(root *os.Root) {
	if j != nil {
		_ = os.Remove(j.file(root.Name())) // one that stays is harmless: what it says is so
	}
}

func journalPath(s snapshot) journalledPath {
	p := journalledPath{Whole: s.whole}
	for _, e := range s.entries {
		p.Entries = append(p.Entries, journalledEntry{e.rel, e.stamp.mode, e.stamp.uid, e.stamp.gid, e.modified, e.content, e.target})
	}
	return p
}

func (p journalledPath) snapshot() snapshot {
	s := snapshot{whole: p.Whole}
	for _, e := range p.Entries {
		s.entries = append(s.entries, entry{
			rel: e.Rel, stamp: stamp{mode: e.Mode, uid: e.UID, gid: e.GID}, modified: e.Modified, content: e.Content, target: e.Target,
		})
	}
	return s
}

// recover puts back what programs of a killed server did. It is called before any runs.
func (r *Runner) recover() error {
	if r.journal == nil {
		return nil
	}
	files, err := os.ReadDir(r.journal.dir)
	if err != nil {
		return fmt.Errorf("protect: %w", err)
	}
	for _, f := range files {
		file := filepath.Join(r.journal.dir, f.Name())
		if strings.HasSuffix(file, ".json") {
			if err := r.recoverOne(file); err != nil {
				r.opts.Logger.Error("what a killed server's programs changed could not be put back", "journal", file, "error", err)
				continue // it stays, for a person to read
			}
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("protect: %w", err)
		}
	}
	return nil
}

func (r *Runner) recoverOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all journalled
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	root, err := os.OpenRoot(all.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody relies on it
	}
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if s := stampOf(info); s.dev != all.Dev || s.ino != all.Ino {
		return nil // another folder has taken its place
	}
	var restored []string
	for name, p := range all.Paths {
		before := p.snapshot()
		place, _ := placeOf(root, name)
		now, failed := take(root, name, true)
		if failed == nil && place == name && (now.holds(before) || !before.whole) {
			continue
		}
		if failed = putBack(root, name, &before); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		restored = append(restored, name)
	}
	r.tell(sandbox.Job{Root: root, Scope: kv.AgentScope(all.Tenant, all.Agent)}, restored)
	return err
}
