package erasure

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// ErrNotTrue: the certificate was changed after signing, or the store contradicts it.
var ErrNotTrue = errors.New("erasure: the certificate does not hold")

// Engine is what a store is kept in.
type Engine string

// The engines.
const (
	RocksDB    Engine = "RocksDB"
	PostgreSQL Engine = "PostgreSQL"
	Memory     Engine = "memory" // of tests
)

// Claimed says what an erasure claims of a store in an engine.
func Claimed(engine Engine) []string {
	if engine == PostgreSQL {
		return []string{
			"PostgreSQL: the tables were rewritten, entry by entry, without the subject's entries; no row of them, dead rows included, ever held erased data.",
			"The tables before were dropped in the transaction that put the new ones in their place: PostgreSQL gave their files back with it.",
			"A scan of all rows afterwards, each decoded, found nothing of the subject.",
		}
	}
	return []string{
		"RocksDB: the store was rewritten, entry by entry, without the subject's entries; each key was written once. Its tables, logs, blob files and manifest never held erased data.",
		"The files of the store before were removed. What a disk, a file system or a snapshot keeps of removed files is the host's.",
	}
}

// ClaimedLive says what an erasure on a running server claims.
func ClaimedLive(engine Engine, reclaimed bool) []string {
	claimed := []string{"A scan of all entries of the tenant afterwards, each decoded, found nothing of the subject; its id was looked for in all keys and values."}
	if reclaimed {
		claimed = append(claimed, fmt.Sprintf("%s has rewritten every table and blob file that held erased data, begun a new log, and removed the old files. Remains of removed files on disks, in file systems and in snapshots are the host's responsibility.", engine))
	}
	return claimed
}

// NotClaimedLive says what an erasure on a running server leaves.
func NotClaimedLive(s Subject, engine Engine, reclaimed bool) []string {
	all := []string{
		"sequences of the subject's own scopes: how often they were written to, under keys that have its id; and the names of topics that are named after it",
		"single keys that the engine notes about its files, until the server is started again; what the process and its system have in memory",
	}
	if !reclaimed {
		all = append(all, "bytes that the engine gives back in its own time, such as dead rows until VACUUM; the command erase writes the store anew")
	}
	if s.Narrowed() || s.Kind == Agent {
		all = append(all, "codes made from vectors of erased records, in blocks shared with other vectors, until these blocks are packed again")
	}
	return append(all, NotClaimed(s, engine)...)
}

// ofPostgres are the places where PostgreSQL may still hold erased data.
var ofPostgres = []string{
	"PostgreSQL's write-ahead log, until its segments are written over, and archives of it",
	"replicas and standbys, until they have replayed the erasure; logical subscribers keep what they were sent",
	"backups of the database: by pg_dump and pg_basebackup, and snapshots of its disks",
	"samples of keys and values that ANALYZE took of the tables before: dead rows of pg_statistic, until that is vacuumed",
	"what a disk or a file system keeps of removed files",
}

// NotClaimed says what an erasure of a subject leaves, of a store in an engine.
func NotClaimed(s Subject, engine Engine) []string {
	var narrowed []string
	if engine == PostgreSQL {
		narrowed = slices.Clone(ofPostgres)
	}
	switch {
	case s.Step != 0:
		narrowed = append(narrowed,
			"that there was a step of that number, and when; positions, and numbers of folds and tasks, which have no gap; of a call in a message that asks for several its name and id",
			"what was said of the step elsewhere: in messages, other steps, memories, files and the events of others, which was searched for its longest lines as it was counted",
			"what its tool did, and jobs that it began; a child that it spawned is an agent like others from then on",
		)
	case s.Session != "":
		narrowed = append(narrowed,
			"what the agent knows from the session outside of it: state that it stores itself, and files",
			"what the agent stored for loom.v1, which has no sessions, and events whose session the emitter did not give",
			"data of children; children that the session spawned are ordinary agents from then on",
		)
	case s.Filter != "":
		narrowed = append(narrowed,
			"texts of the records elsewhere: in results, messages and folds of sessions that quote them, and in events; erase those sessions",
		)
	}
	if s.Kind == Agent && s.Filter == "" && s.Step == 0 && s.Shared == erase.Authorship {
		narrowed = append(narrowed, "records that it saved into the memory of persons and spaces: they stay without its name, as requested; their texts may still mention it")
	}
	if s.Is(Agent, s.ID) {
		narrowed = append(narrowed, "spaces that it made, which stay, without its name, for agents with access; a space left without an admin is administered by the operator of the server")
	}
	if s.Narrowed() {
		narrowed = append(narrowed, "ids of erased records in others that supersede them or derive from them, which stay as they are; answers of repeated requests, which are made again")
	}
	return append(narrowed, []string{
		"backups made before: known ones are listed as outstanding",
		"what others stored: their records, steps, events, messages and prompts, also where they quote the subject, which is counted where they have its id (records of prompts that were made with a person's memory go with it); what an agent stored for itself about a person when the person is erased",
		"digests and numbers of erased audit records",
		"files in workspaces and copies of protected ones, the server's own log, and what a model's provider, an embedder or a tool was sent",
	}...)
}

// TimeTravel says which views of the past need erased data.
const TimeTravel = "Earlier versions of the subject's records, and reads as of a moment before the erasure, are erased with them and can't be answered any more. Positions of watched memories that lost records are gone. Recorded prompts that could show erased data are erased, and can't be made again or compared."

// File is a file of a store.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// TableDigest is what a table of PostgreSQL holds.
type TableDigest struct {
	Name    string `json:"name"`
	Entries int64  `json:"entries"`
	// Scopes is how many sequences the keyspace has, which are in the digest, too.
	Scopes int64 `json:"scopes"`
	Bytes  int64 `json:"bytes"`
	// SHA256 is of all keys and values in order, each with its size (be32) before it.
	SHA256 string `json:"sha256"`
}

// Certificate says that a subject was erased.
type Certificate struct {
	Format  int       `json:"format"` // 1
	Version string    `json:"version"`
	Engine  Engine    `json:"engine"`
	Subject Subject   `json:"subject"`
	Time    time.Time `json:"time"`
	// Statement is a sentence that names the erased data, or says that nothing was found.
	Statement string `json:"statement"`
	// Found is the number of the subject's entries before, counting only entries that the
	// scan afterwards would find.
	Found int64 `json:"found"`
	// Erased counts by keyspace what went and what stayed.
	Erased map[string]Tally `json:"erased"`
	// Records are the digests of the records that a session or a filter took out: the first
	// 16 bytes, in hex, of the SHA-256 of tenant, 00, kind of owner (a, u, s), owner, 00 and id.
	Records []string `json:"records,omitempty"`
	// RecordsAnew is how many records were written anew without them.
	RecordsAnew int64 `json:"records_anew,omitempty"`
	// AuditRecords is how many records of calls went; their digests stay.
	AuditRecords int `json:"audit_records"`
	// Left is how many entries of the subject's a decoded scan of the new store found, and such
	// in whose bytes its id stands although nothing there may name it.
	Left int64 `json:"left"`
	// Quoted counts remaining entries in which the scan found the subject's id, by author:
	// as a substring, or as a word if it has fewer than 8 bytes. For a session the id is the
	// session's, searched in the agent's other data. For a step it counts the entries that
	// held a line of the step's text when it was counted.
	Quoted map[string]int64 `json:"quoted,omitempty"`
	// Counts are what went, by kind, as a running server counted it.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Files are all files of the new store; of one in PostgreSQL Tables are what it holds.
	Files  []File        `json:"files,omitempty"`
	Tables []TableDigest `json:"tables,omitempty"`
	// Backups may hold erased data, and are outstanding.
	Backups    []string `json:"backups_outstanding"`
	Claimed    []string `json:"claimed"`
	NotClaimed []string `json:"not_claimed"`
	TimeTravel string   `json:"time_travel"`
	// PublicKey and Signature are of ed25519; the signature is of the certificate as
	// compact JSON without it.
	PublicKey []byte `json:"public_key"`
	Signature []byte `json:"signature,omitempty"`
}

// State fills in the statement.
func (c *Certificate) State() {
	c.Statement = fmt.Sprintf("Erased was %s: %d entries were found before, and none afterwards.", c.Subject, c.Found)
	if c.Found == 0 {
		c.Statement = fmt.Sprintf("Nothing of %s was found, so nothing of it was erased.", c.Subject)
	}
	quoted := int64(0)
	for _, n := range c.Quoted {
		quoted += n
	}
	if quoted > 0 {
		what := "Its id stands"
		if c.Subject.Step != 0 {
			what = "Lines of it stand"
		}
		c.Statement += fmt.Sprintf(" %s in %d entries of others, which stay.", what, quoted)
	}
}

// Text is the certificate as a file has it.
func (c *Certificate) Text() string {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "" // of plain data: never
	}
	return string(text) + "\n"
}

// signed are the bytes that are signed.
func (c Certificate) signed() ([]byte, error) {
	c.Signature = nil
	return json.Marshal(c)
}

// Sign signs the certificate.
func (c *Certificate) Sign(key ed25519.PrivateKey) error {
	c.PublicKey, _ = key.Public().(ed25519.PublicKey)
	message, err := c.signed()
	if err == nil {
		c.Signature = ed25519.Sign(key, message)
	}
	return err
}

// Parse reads a certificate. What is not in it is not signed, so a field that is unknown,
// misspelt or given twice is an ErrNotTrue.
func Parse(text []byte) (*Certificate, error) {
	c := new(Certificate)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%w: it can't be read: %w", ErrNotTrue, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows it", ErrNotTrue)
	}
	again, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var given bytes.Buffer
	if err := json.Compact(&given, text); err != nil || !bytes.Equal(given.Bytes(), again) {
		return nil, fmt.Errorf("%w: its form differs from the signed one", ErrNotTrue)
	}
	return c, nil
}

// Verify compares the signature with the certificate and, unless it is nil, with the key of
// who must have signed it.
func (c *Certificate) Verify(by ed25519.PublicKey) error {
	switch {
	case c.Format != 1:
		return fmt.Errorf("%w: its format is %d, this program knows 1", ErrNotTrue, c.Format)
	case len(c.PublicKey) != ed25519.PublicKeySize:
		return fmt.Errorf("%w: it has no public key", ErrNotTrue)
	case by != nil && !by.Equal(ed25519.PublicKey(c.PublicKey)):
		return fmt.Errorf("%w: another key signed it", ErrNotTrue)
	}
	message, err := c.signed()
	if err != nil {
		return err
	}
	if !ed25519.Verify(c.PublicKey, message, c.Signature) {
		return fmt.Errorf("%w: its signature is wrong", ErrNotTrue)
	}
	if c.Left != 0 {
		return fmt.Errorf("%w: it says that %d entries were left", ErrNotTrue, c.Left)
	}
	return nil
}

// CompareFiles compares the files of a store with the certificate's list.
func (c *Certificate) CompareFiles(ctx context.Context, dir string) error {
	files, err := Files(ctx, dir)
	if err != nil {
		return err
	}
	if len(files) != len(c.Files) {
		return fmt.Errorf("%w: the store has %d files, not %d", ErrNotTrue, len(files), len(c.Files))
	}
	for i, f := range files {
		if f != c.Files[i] {
			return fmt.Errorf("%w: file %s has changed", ErrNotTrue, f.Name)
		}
	}
	return nil
}

// Files reads all files of a store, in the order of their names.
func Files(ctx context.Context, dir string) (files []File, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("erasure: %s is no file", path)
		}
		f, err := readFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		f.Name = filepath.ToSlash(name)
		files = append(files, f)
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

func readFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return File{}, err
	}
	return File{Bytes: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}
