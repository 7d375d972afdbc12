package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// loomCommand runs a command line and returns what it said.
func loomCommand(tb testing.TB, args ...string) (string, error) {
	tb.Helper()
	var out bytes.Buffer
	err := run(tb.Context(), args, noEnvironment, &out, io.Discard)
	return out.String(), err
}

// places are a folder for backups beside a server's own.
func places(tb testing.TB) (dir, copies string) {
	tb.Helper()
	root := tb.TempDir()
	dir = filepath.Join(root, "server")
	must(tb, os.Mkdir(dir, 0o700))
	return dir, filepath.Join(root, "copies")
}

func (p *process) admin() loombridgev1.AdminServiceClient {
	return loombridgev1.NewAdminServiceClient(p.conn)
}

// A backup of a server that serves has what was stored before it and nothing of what was
// stored after, and what is restored exports as the store did.
//
// Y05
func TestBackupRestores(t *testing.T) {
	t.Parallel()
	dir, copies := places(t)
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir)
	s := &stand{tb: t, process: p, ctx: t.Context(), agent: "a"}
	for i := range 200 {
		save(t, p, fmt.Sprintf("the %dth thing to know", i))
	}
	s.read("s1", "big.txt", 100_000) // offloaded to a blob
	must(t, p.Stop())
	exported := func(store string) map[string]string {
		out := t.TempDir()
		_, err := loomCommand(t, "export", "--data-dir", store, "--agent", "a", "--out", out)
		must(t, err)
		return filesIn(t, out)
	}
	before := exported(store)

	flags := []string{"--backup-dir", copies, "--backup-interval", "0"}
	p = MustRun(t, dir, flags...)
	said, err := loomCommand(t, "backup", "create", "--addr", p.Address)
	must(t, err)
	name, _, _ := strings.Cut(said, " ")
	save(t, p, "a pelican, too late for the backup")
	again, err := loomCommand(t, "backup", "create", "--addr", p.Address)
	must(t, err)
	if !strings.Contains(again, "of it new") {
		t.Errorf("create said %q", again)
	}
	must(t, p.Stop())

	if said, err := loomCommand(t, "backup", "verify", name, "--backup-dir", copies); err != nil || !strings.HasSuffix(said, "nothing is damaged\n") {
		t.Errorf("verify: %v: %s", err, said)
	}
	if _, err := loomCommand(t, "backup", "restore", name, "--backup-dir", copies, "--data-dir", store); !errors.Is(err, fs.ErrExist) {
		t.Errorf("restored over a store: %v", err)
	}
	must(t, os.RemoveAll(store))
	if _, err := loomCommand(t, "backup", "restore", name, "--backup-dir", copies, "--data-dir", store); err != nil {
		t.Fatal(err)
	}
	if after := exported(store); !maps.Equal(before, after) {
		t.Errorf("the export has %d files, before it had %d, and they differ", len(after), len(before))
	}
	p = MustRun(t, dir, flags...)
	if hits(t, p, "pelican") != 0 || hits(t, p, "199th thing") == 0 {
		t.Error("the store is not that of the backup")
	}
	got, err := p.admin().ListBackups(t.Context(), &loombridgev1.ListBackupsRequest{})
	must(t, err)
	if len(got.GetBackups()) != 2 || got.GetBackups()[1].GetName() != name {
		t.Errorf("listed %v", got.GetBackups())
	}
}

// What a backup has in common with the one before takes its room once, and shares nothing
// with the store.
func TestBackupSharesFiles(t *testing.T) {
	t.Parallel()
	dir, copies := places(t)
	p := MustRun(t, dir, "--backup-dir", copies, "--backup-interval", "0")
	s := &stand{tb: t, process: p, ctx: t.Context(), agent: "a"}
	s.record("s1", "shell:run", "{}", strconv.Quote(hex.EncodeToString(noise(1, 400_000))))
	create := func(full bool) *loombridgev1.Backup {
		made, err := p.backUp(t, full)
		must(t, err)
		return made
	}
	first := create(false)
	save(t, p, "one more")
	second, full := create(false), create(true)
	if first.GetNewBytes() != first.GetBytes() || second.GetNewBytes() > second.GetBytes()/5 || full.GetNewBytes() != full.GetBytes() {
		t.Errorf("new: %d of %d, then %d of %d, then %d of %d", first.GetNewBytes(), first.GetBytes(), second.GetNewBytes(), second.GetBytes(), full.GetNewBytes(), full.GetBytes())
	}
	if status := s.backups(); status.GetLast().GetName() != full.GetName() {
		t.Errorf("status: %v", status)
	}
	must(t, p.Stop()) // which merges tables no more
	stored := map[uint64]bool{}
	for _, file := range tables(t, filepath.Join(dir, "store")) {
		stored[inode(t, file)] = true
	}
	for _, b := range []*loombridgev1.Backup{first, second, full} {
		for _, file := range tables(t, filepath.Join(copies, b.GetName())) {
			if stored[inode(t, file)] {
				t.Errorf("%s is a file of the store", file)
			}
		}
	}
	said, err := loomCommand(t, "backup", "prune", "--keep", "1", "--backup-dir", copies)
	if err != nil || strings.Count(said, "removed") != 2 {
		t.Errorf("prune: %v: %s", err, said)
	}
	if said, err := loomCommand(t, "backup", "verify", "--backup-dir", copies); err != nil || !strings.HasPrefix(said, full.GetName()) {
		t.Errorf("verify: %v: %s", err, said)
	}
	if said, err := loomCommand(t, "backup", "create", "--offline", "--backup-dir", copies, "--data-dir", filepath.Join(dir, "store")); err != nil || !strings.Contains(said, "of it new") {
		t.Errorf("offline: %v: %s", err, said)
	}
}

// backUp has a backup made.
func (p *process) backUp(tb testing.TB, full bool) (made *loombridgev1.Backup, err error) {
	stream, err := p.admin().CreateBackup(tb.Context(), &loombridgev1.CreateBackupRequest{Full: full})
	for err == nil {
		var told *loombridgev1.CreateBackupResponse
		if told, err = stream.Recv(); told.GetBackup() != nil {
			made = told.GetBackup()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return made, err
}

// backups is what the server says of them.
func (s *stand) backups() *loombridgev1.BackupStatus {
	s.tb.Helper()
	got, err := s.admin().GetStatus(s.ctx, &loombridgev1.GetStatusRequest{})
	must(s.tb, err)
	return got.GetBackups()
}

// inode tells a file apart from all others.
func inode(tb testing.TB, file string) uint64 {
	tb.Helper()
	info, err := os.Stat(file)
	must(tb, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// tables are the files of a store that never change.
func tables(tb testing.TB, dir string) []string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	must(tb, err)
	if len(found) == 0 {
		tb.Fatalf("%s has no tables", dir)
	}
	return found
}

// A backup that is not what it was made as is told, by verify and by restore, which leaves
// nothing.
func TestBackupDamaged(t *testing.T) {
	t.Parallel()
	dir, copies := places(t)
	p := MustRun(t, dir, "--backup-dir", copies, "--backup-interval", "0")
	s := &stand{tb: t, process: p, ctx: t.Context(), agent: "a"}
	s.record("s1", "shell:run", "{}", strconv.Quote(hex.EncodeToString(noise(1, 400_000)))) // more than stays in the log
	_, err := loomCommand(t, "backup", "create", "--addr", p.Address)
	must(t, err)
	must(t, p.Stop())
	whole, err := filepath.Glob(filepath.Join(copies, "*"))
	must(t, err)
	for _, file := range slices.Concat(whole, tables(t, whole[0])) {
		info, err := os.Stat(file)
		must(t, err)
		if info.IsDir() || filepath.Base(file) == "lock" {
			continue
		}
		content, err := os.ReadFile(file)
		must(t, err)
		change := func(content []byte) {
			must(t, os.Chmod(file, 0o600))
			must(t, os.WriteFile(file, content, 0o600))
		}
		for name, damaged := range map[string][]byte{"a bit": flipped(content), "the end": content[:len(content)-1], "all": nil} {
			change(damaged)
			if _, err := loomCommand(t, "backup", "verify", "--files-only", filepath.Base(whole[0]), "--backup-dir", copies); !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("%s of %s: verify: %v", name, file, err)
			}
			to := filepath.Join(t.TempDir(), "restored")
			if _, err := loomCommand(t, "backup", "restore", filepath.Base(whole[0]), "--backup-dir", copies, "--data-dir", to); !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("%s of %s: restore: %v", name, file, err)
			}
			if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
				t.Errorf("%s of %s: restore left %v", name, file, left)
			}
		}
		change(content)
	}
}

func flipped(content []byte) []byte {
	out := bytes.Clone(content)
	out[rand.IntN(len(out))] ^= 1 << rand.IntN(8)
	return out
}

// Who may have backups made, and what says that there are none.
func TestBackupRefusals(t *testing.T) {
	t.Parallel()
	dir, copies := places(t)
	try := func(p *process, token string) error {
		ctx := t.Context()
		if token != "" {
			ctx = as(ctx, token)
		}
		_, err := p.admin().ListBackups(ctx, &loombridgev1.ListBackupsRequest{})
		if stream, streamErr := p.admin().CreateBackup(ctx, &loombridgev1.CreateBackupRequest{}); streamErr == nil {
			for ; streamErr == nil; _, streamErr = stream.Recv() {
			}
			if !errors.Is(streamErr, io.EOF) && status.Code(streamErr) != status.Code(err) {
				t.Errorf("list: %v, create: %v", err, streamErr)
			}
		}
		return err
	}
	p := MustRun(t, dir)
	if err := try(p, ""); reasonOf(err) != "NO_BACKUP_FOLDER" || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without a folder: %v", err)
	}
	must(t, p.Stop())
	callers := filepath.Join(filepath.Dir(dir), "callers.toml")
	must(t, os.WriteFile(callers, fmt.Appendf(nil, "[[credential]]\ntoken_sha256 = %q\ntenant = \"t\"\nagents = [\"*\"]\n"+
		"[[credential]]\ntoken_sha256 = %q\ntenant = \"t\"\nagents = [\"none\"]\noperates = true\n", hashOf("agent"), hashOf("operator")), 0o600))
	p = MustRun(t, dir, "--backup-dir", copies, "--backup-interval", "0", "--credentials", callers)
	if err := try(p, "agent"); reasonOf(err) != "OPERATOR_REQUIRED" || status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent: %v", err)
	}
	if err := try(p, "operator"); err != nil {
		t.Errorf("the operator: %v", err)
	}
	for name, args := range map[string][]string{
		"in the workspace":    {"--workspace", dir, "--backup-dir", filepath.Join(dir, "copies")},
		"in the store":        {"--workspace", dir, "--data-dir", filepath.Join(t.TempDir(), "s"), "--backup-dir", filepath.Join(dir, "s", "copies")},
		"of what is not kept": {"--workspace", dir, "--ephemeral", "--backup-dir", copies},
		"read by programs":    {"--workspace", dir, "--backup-dir", copies, "--sandbox-read", copies},
	} {
		if err := run(t.Context(), append([]string{"--addr", "127.0.0.1:0"}, args...), noEnvironment, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: it started", name)
		}
	}
	if _, err := loomCommand(t, "backup", "list"); err == nil || !strings.Contains(err.Error(), "--backup-dir") {
		t.Errorf("list of nothing: %v", err)
	}
}

// The commands work wherever they are typed: also in a folder above the backups, which a
// server would have for its workspace.
func TestBackupCommandsAboveTheBackups(t *testing.T) {
	t.Parallel()
	above, dir := t.TempDir(), t.TempDir()
	p := MustRun(t, dir, "--backup-dir", filepath.Join(above, "copies"), "--backup-interval", "0")
	save(t, p, "kept")
	typed := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), os.Args[0], append([]string{"backup"}, args...)...)
		c.Dir, c.Env = above, append(os.Environ(), asServer+"=1")
		if said, err := c.CombinedOutput(); err != nil {
			t.Errorf("backup %v: %v: %s", args, err, said)
		}
	}
	typed("create", "--addr", p.Address)
	must(t, p.Stop())
	typed("create", "--offline", "--data-dir", filepath.Join(dir, "store"), "--backup-dir", "copies")
	typed("list", "--backup-dir", "copies")
	typed("verify", "--backup-dir", "copies")
	typed("restore", "--backup-dir", "copies", "--data-dir", "new")
	typed("prune", "--backup-dir", "copies", "--keep", "1")
	if n := hits(t, MustRun(t, dir, "--data-dir", filepath.Join(above, "new")), "kept"); n != 1 {
		t.Errorf("%d hits in the restored store", n)
	}
}

// A flag that a command would take no notice of is refused, before anything is asked or made.
func TestFlagsWithoutMeaning(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"backup create --backup-dir x":          "--backup-dir means nothing here: the server that runs writes into its own",
		"backup create --offline --addr :1":     "--addr means nothing here",
		"backup create --offline --server-ca x": "--server-ca means nothing here",
		"backup list --addr :1":                 "unknown flag: --addr",
		"backup list --data-dir x":              "unknown flag: --data-dir",
		"backup verify --store x":               "unknown flag: --store",
		"backup verify --all b":                 "--all: a backup is named",
		"backup restore --server-ca x":          "unknown flag: --server-ca",
		"backup prune --data-dir x":             "unknown flag: --data-dir",
		"erase verify f --backup-dir x":         "unknown flag: --backup-dir",
		"erase verify f --memory-language x":    "unknown flag: --memory-language",
	} {
		if said, err := loomCommand(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) || said != "" {
			t.Errorf("%s: %v: %q", args, err, said)
		}
	}
}
