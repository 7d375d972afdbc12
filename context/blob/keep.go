package blob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

const (
	// PersistentFolder is where the paths of promoted blobs lie.
	PersistentFolder = mention.PersistentFolder
	// ArchiveFolder is the folder of archived blobs.
	ArchiveFolder = mention.ArchiveFolder
	// MaxAliases bounds the paths that one blob has had.
	MaxAliases = 16
	// MaxNameBytes bounds the last part of a chosen path.
	MaxNameBytes = 128
	// MaxCategoryBytes bounds the folder above it.
	MaxCategoryBytes = 64
	// MaxTags bounds the tags of an archived blob.
	MaxTags = 32
	// MaxTagBytes bounds one of them.
	MaxTagBytes = 128
)

// DefaultArchive is the archive's category of blobs for which none is named.
const DefaultArchive = "general"

// ArchiveCategories returns the categories of the archive.
func ArchiveCategories() []string { return []string{"reports", "datasets", "config", DefaultArchive} }

// Promotion says how a blob is raised.
type Promotion struct {
	// Tier is ShortTerm or LongTerm. A blob is never lowered. A ShortTerm one
	// stays for a week from then on, if that is longer than before.
	Tier Tier
	// Category is the folder of its new path. Default: the blob's own category.
	Category string
	// Name is the last part of its new path. Default: that of the old one.
	Name string
	// Important keeps it although it has expired. Default: as before.
	Important bool
	// RequestID makes the call safe to repeat: the same promotion of the same
	// name again gives the first answer, any other is kv.ErrRequestReused.
	RequestID string
}

// Promote raises a blob and gives it the path
// "persistent/{owner}/{category}/{name}". Its earlier paths go on leading to
// it. Errors are as of Lookup, and *invalid.Error.
func (s *Store) Promote(ctx context.Context, scope kv.Scope, name string, p Promotion) (Entry, error) {
	if p.Tier != ShortTerm && p.Tier != LongTerm {
		return Entry{}, invalid.Field(ErrInvalid, "tier", "must be short_term or long_term")
	}
	if err := checkParts(p.Category, p.Name); err != nil {
		return Entry{}, err
	}
	asked := fmt.Sprintf("promote %q %d %q %q %v", name, p.Tier, p.Category, p.Name, p.Important)
	return s.change(ctx, scope, name, p.RequestID, asked, func(e *Entry) string { return s.promote(scope, e, p) })
}

// promote raises an entry and says what its path should be.
func (s *Store) promote(scope kv.Scope, e *Entry, p Promotion) string {
	s.raise(e, p.Tier)
	e.Important = e.Important || p.Important
	folder := p.Category
	if folder == "" {
		folder = pathPart(e.Category, CategoryTool)
	}
	return PersistentFolder + pathPart(scope.Owner, "owner") + "/" + folder + "/" + nameOf(p.Name, e)
}

// StageKept stages that a blob is LongTerm, under the rules of Promote, for a commit that has
// Ref(scope) among its refs. One that is already stays as it is. ErrNotFound where it has
// gone since it was looked up.
func (s *Store) StageKept(ctx context.Context, tx *kv.Tx, scope kv.Scope, found Entry) error {
	e, err := readEntry(ctx, tx, scope, found.Home())
	if err != nil || e.Tier == LongTerm {
		return err
	}
	return stageChange(ctx, tx, scope, &e, func(e *Entry) string { return s.promote(scope, e, Promotion{Tier: LongTerm}) })
}

// raise lifts an entry into a tier.
func (s *Store) raise(e *Entry, tier Tier) {
	if tier < e.Tier {
		return
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	expires, ever := e.ExpireTime()
	if tier == ShortTerm && ever && expires.Before(now.Add(noteTTL)) {
		e.TTL = noteTTL
	}
	e.Tier, e.PromoteTime = tier, now
}

// Renew begins the time of a blob again, as if it had been stored now. It returns the
// errors of Lookup.
func (s *Store) Renew(ctx context.Context, scope kv.Scope, name string) (Entry, error) {
	return s.change(ctx, scope, name, "", "", func(e *Entry) string {
		e.Time = s.now().UTC().Truncate(time.Microsecond)
		return e.Path
	})
}

// Archiving says how a blob is put into the archive.
type Archiving struct {
	// Category is one of ArchiveCategories. Default DefaultArchive.
	Category string
	// Tags are words by which it is found, at most MaxTags. They take the place of
	// those it had. Default none.
	Tags []string
	// Name is the last part of its new path. Default: that of the old one.
	Name string
	// RequestID makes the call safe to repeat, as in Promotion.
	RequestID string
}

// Archive puts a blob into the archive, where it stays, and gives it the path
// "archive/{category}/{name}". Its earlier paths go on leading to it. It returns the errors
// of Lookup, and *invalid.Error.
func (s *Store) Archive(ctx context.Context, scope kv.Scope, name string, a Archiving) (Entry, error) {
	a.Category = cmp.Or(a.Category, DefaultArchive)
	if err := checkArchive(a.Category); err != nil {
		return Entry{}, err
	}
	if err := checkParts("", a.Name); err != nil {
		return Entry{}, err
	}
	tags, err := cleanTags(a.Tags)
	if err != nil {
		return Entry{}, err
	}
	asked := fmt.Sprintf("archive %q %q %q %q", name, a.Category, tags, a.Name)
	return s.change(ctx, scope, name, a.RequestID, asked, func(e *Entry) string {
		e.Archive = Archived{Category: a.Category, Tags: tags, Time: s.now().UTC().Truncate(time.Microsecond)}
		return ArchiveFolder + a.Category + "/" + nameOf(a.Name, e)
	})
}

func checkArchive(category string) error {
	if !slices.Contains(ArchiveCategories(), category) {
		return invalid.Field(ErrInvalid, "category", "%s", "must be one of "+strings.Join(ArchiveCategories(), ", "))
	}
	return nil
}

// change looks an entry up, lets edit change it and say what its path should
// be, and stores both.
func (s *Store) change(ctx context.Context, scope kv.Scope, name, requestID, asked string, edit func(*Entry) string) (Entry, error) {
	found, err := s.Lookup(ctx, scope, name)
	answered := err != nil && requestID != ""
	if err != nil && !answered {
		return Entry{}, err
	}
	digest := sha256.Sum256([]byte(asked))
	var changed Entry
	lookup := err
	err = s.writer.Do(ctx, kv.Request{Refs: []kv.Ref{s.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		home, replayed, err := kv.LookupOnce(ctx, tx, s.Ref(scope), requestID, digest)
		if err != nil {
			return err
		}
		if replayed {
			changed, err = readEntry(ctx, tx, scope, string(home))
			return err
		}
		if lookup != nil {
			return lookup
		}
		if changed, err = readEntry(ctx, tx, scope, found.Home()); err != nil {
			return err
		}
		if err := stageChange(ctx, tx, scope, &changed, edit); err != nil {
			return err
		}
		kv.StageOnce(tx, s.Ref(scope), requestID, digest, []byte(changed.Home()), s.now())
		return nil
	}})
	if err != nil {
		return Entry{}, fmt.Errorf("blob: change %.64q: %w", name, err)
	}
	return changed.seen(scope.Owner, s.now()), nil
}

// readEntry reads the entry of a home path; a missing one gives ErrNotFound.
func readEntry(ctx context.Context, from kv.Getter, scope kv.Scope, home string) (Entry, error) {
	values, err := from.Get(ctx, kv.Blobs, pathKey(scope, home))
	if err != nil {
		return Entry{}, err
	}
	if values[0] == nil {
		return Entry{}, fmt.Errorf("%w: %q", ErrNotFound, home)
	}
	return decodeEntry(home, values[0])
}

func stageChange(ctx context.Context, tx *kv.Tx, scope kv.Scope, e *Entry, edit func(*Entry) string) error {
	home := e.Home()
	wanted := edit(e)
	if err := checkPath(wanted); err != nil {
		return err
	}
	if wanted != e.Path && !slices.Contains(e.Aliases, wanted) {
		if len(e.Aliases) >= MaxAliases {
			return invalid.Field(ErrInvalid, "name", "is that of a blob which has had %d paths already", MaxAliases)
		}
		p, err := freePath(ctx, tx, scope, wanted)
		if err != nil {
			return err
		}
		e.Aliases, e.Path = slices.Concat(e.Aliases, []string{e.Path}), p
		tx.Put(kv.Blobs, aliasKey(scope, p), []byte(home))
	}
	hash, err := hex.DecodeString(e.Ref)
	if err != nil {
		return err
	}
	number, _ := step.ParseID(e.StepID)
	tx.Put(kv.Blobs, pathKey(scope, home), e.encode(hash, number))
	return nil
}

// checkParts checks the parts of a path that a caller has chosen.
func checkParts(category, name string) error {
	if problem := badPart(category, MaxCategoryBytes); problem != "" {
		return invalid.Field(ErrInvalid, "category", "%s", problem)
	}
	if problem := badPart(name, MaxNameBytes); problem != "" {
		return invalid.Field(ErrInvalid, "new_name", "%s", problem)
	}
	return nil
}

// badPart says what is wrong with a part of a path; an empty one is fine.
func badPart(part string, limit int) string {
	switch {
	case len(part) > limit:
		return fmt.Sprintf("is longer than %d bytes", limit)
	case !utf8.ValidString(part):
		return "is not UTF-8"
	case strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || strings.ContainsRune("/\\\"\x7f", r) }):
		return "holds a slash, a quote or a control character"
	case part == "." || part == "..":
		return "is no name"
	}
	return ""
}

// pathPart makes a part of a path of any text.
func pathPart(text, fallback string) string {
	part := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("/\\\"\x7f", r) {
			return '_'
		}
		return r
	}, text)
	if part == "" || part == "." || part == ".." {
		return fallback
	}
	return part
}

func nameOf(chosen string, e *Entry) string {
	if chosen != "" {
		return chosen
	}
	return path.Base(e.Home())
}

// cleanTags checks tags and leaves out what comes twice.
func cleanTags(tags []string) ([]string, error) {
	if len(tags) > MaxTags {
		return nil, invalid.Field(ErrInvalid, "tags", "are more than %d", MaxTags)
	}
	var clean []string
	for _, tag := range tags {
		if tag == "" || len(tag) > MaxTagBytes || !utf8.ValidString(tag) {
			return nil, invalid.Field(ErrInvalid, "tags", "must be 1 to %d bytes of UTF-8 each", MaxTagBytes)
		}
		if !slices.Contains(clean, tag) {
			clean = append(clean, tag)
		}
	}
	return clean, nil
}
