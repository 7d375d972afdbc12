package recall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// playbookCandidates is how many of the records that match by words are examined: some
	// are for other tasks, or too old.
	playbookCandidates = 20
	// maxUses bounds the uses that wait to be counted. More are not counted.
	maxUses = 256
	// countTime bounds the counting of one.
	countTime = 5 * time.Second
	// maxStanding bounds the sessions of which it is known which playbook stands in their
	// prompts.
	maxStanding = 1 << 12
	// countAttempts bounds how often it is tried when somebody else changed the record.
	countAttempts = 4
)

// PlaybookStore is a Store whose records can be changed. *memory.Store is one.
type PlaybookStore interface {
	Store
	Get(ctx context.Context, scope kv.Scope, id string) (record.Record, error)
	Update(ctx context.Context, scope kv.Scope, u memory.Update, requestID string) (record.Record, error)
}

// Playbooks finds the strategy that fits best, and counts its use in the background.
// Close it.
type Playbooks struct {
	store  PlaybookStore
	logger *slog.Logger
	uses   chan use
	// standing has the playbook that stands in a session's prompts.
	standing *cache.Cache[playbookPlace, string]
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// playbookPlace is a session whose prompts show playbooks.
type playbookPlace struct {
	scope   kv.Scope
	session string
}

// use is a playbook that was shown.
type use struct {
	scope kv.Scope
	id    string
	at    time.Time
}

// NewPlaybooks returns the playbooks of a store. A nil logger is silent.
func NewPlaybooks(store PlaybookStore, logger *slog.Logger) *Playbooks {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Playbooks{store: store, logger: logger, uses: make(chan use, maxUses), standing: cache.New[playbookPlace, string](maxStanding), stop: stop}
	p.done.Go(func() { p.count(ctx) })
	return p
}

// Close ends the counting; uses that wait are not counted.
func (p *Playbooks) Close() error {
	p.stop()
	p.done.Wait()
	return nil
}

// Name is that of the section.
func (p *Playbooks) Name() string { return settings.Playbook }

const playbookFilter = `kind = "` + KindPlaybook + `" AND metadata.status = "` + string(playbook.Approved) + `"`

// Collect finds the best playbook.
func (p *Playbooks) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return p.collect(ctx, p.store.At(a.View), a)
}

// Remembered is Collect without a search.
func (p *Playbooks) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	return remembered(p.store, a, func(view memory.View) (gather.Found, error) { return p.collect(ctx, view, a) })
}

func (p *Playbooks) collect(ctx context.Context, view memory.View, a *gather.Ask) (gather.Found, error) {
	hits, err := search(ctx, view, a, query{
		scopes: scopesOf(a), filter: playbookFilter, limit: playbookCandidates, minScore: playbook.MinScore, minShare: minShare,
	}, candidatesOf)
	if err != nil {
		return gather.Found{}, err
	}
	limit := a.Settings.Cap(settings.Playbook)
	b := &gather.Block{Frame: playbook.Hint(playbook.Found{}, limit), NewName: settings.Playbook + newSuffix, Input: a.Settings.UserID + "\x00" + a.TaskType}
	b.Frame.Text, b.Frame.Attributes, b.Frame.Source, b.Rest = "", "", "playbooks", b.Frame.Rest
	found := gather.Found{Block: b, Note: hits.note}
	if best, ok := playbook.Match(hits.all, a.TaskType, a.Now); ok {
		hint := playbook.Hint(best, limit)
		scope := hits.scopes[best.RecordID]
		ref := refOf(scope, best.RecordID)
		b.Items = []gather.Item{{Ref: ref, Version: hintVersion(best), Text: hint.Text, Attributes: hint.Attributes}}
		at, stood := playbookPlace{a.Scope, a.SessionID}, shows(a.Shown, ref)
		found.Rendered = func(refs []string) { p.rendered(at, stood, refs, use{scope, best.RecordID, a.Now}) }
	}
	b.Stale, err = p.changed(ctx, view, a)
	return found, err
}

// candidates are the playbooks among hits, and whose each is.
type candidates struct {
	all    []playbook.Found
	scopes map[string]kv.Scope
	note   string
}

// candidatesOf are the playbooks that a search found. A record that is no playbook, or that
// no program or person vouches for, is passed over, and so is one of the user's with the id
// of one of the agent's.
func candidatesOf(found *results) (candidates, int) {
	c := candidates{scopes: make(map[string]kv.Scope, len(found.hits)), note: found.note}
	for i := range found.hits {
		hit := &found.hits[i]
		r := &hit.Record
		entry, err := playbook.Parse(r.Text, r.Metadata)
		if _, there := c.scopes[r.ID]; there || err != nil || !r.Vouched() {
			continue
		}
		c.scopes[r.ID] = hit.Scope
		c.all = append(c.all, playbook.Found{Entry: entry, RecordID: r.ID, Score: hit.Score, ChangeTime: changeTime(r)})
	}
	return c, found.bytes()
}

// changeTime is when a record was changed last.
func changeTime(r *record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}

func shows(shown []gather.Item, ref string) bool {
	for _, item := range shown {
		if item.Ref == ref {
			return true
		}
	}
	return false
}

// hintVersion stands for what a hint says, whatever its score, and whether it may be
// shown: that it was counted changes its record but not the hint.
func hintVersion(f playbook.Found) string {
	f.Score = 1
	sum := sha256.Sum256([]byte(string(f.Status) + "\n" + playbook.Hint(f, 0).Text))
	return hex.EncodeToString(sum[:8])
}

// changed reports whether a playbook that is shown says something else, or went.
func (p *Playbooks) changed(ctx context.Context, view memory.View, a *gather.Ask) (bool, error) {
	return anyShown(ctx, view, a, func(r *record.Record, item gather.Item) bool {
		entry, err := playbook.Parse(r.Text, r.Metadata)
		return err != nil || r.Archived || !r.Vouched() || r.Review.Hides() || r.SupersededBy != "" || r.Kind != KindPlaybook ||
			hintVersion(playbook.Found{Entry: entry, RecordID: r.ID}) != item.Version
	})
}

// rendered has a use counted, if the playbook has entered the session's prompts. stood says
// that it stood there before.
func (p *Playbooks) rendered(at playbookPlace, stood bool, refs []string, u use) {
	ref := refOf(u.scope, u.id)
	if !slices.Contains(refs, ref) {
		p.standing.Put(at, "", 1)
		return
	}
	before, _ := p.standing.Get(at)
	p.standing.Put(at, ref, 1)
	if stood || before == ref {
		return
	}
	select {
	case p.uses <- u:
	default:
		p.logger.Warn("use of a playbook not counted: too many wait", "record", u.id)
	}
}

// count counts uses until ctx ends.
func (p *Playbooks) count(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-p.uses:
			limited, cancel := context.WithTimeout(ctx, countTime)
			if err := p.countOne(limited, u); err != nil && ctx.Err() == nil {
				p.logger.Warn("use of a playbook not counted", "scope", u.scope.String(), "record", u.id, "error", err)
			}
			cancel()
		}
	}
}

func (p *Playbooks) countOne(ctx context.Context, u use) (err error) {
	for range countAttempts {
		var r record.Record
		if r, err = p.store.Get(ctx, u.scope, u.id); err != nil {
			return err
		}
		var metadata []byte
		if metadata, err = counted(r.Text, r.Metadata, u.at); err != nil {
			return err
		}
		if _, err = p.store.Update(ctx, u.scope, memory.Update{
			ID: u.id, ExpectedVersion: r.Version, Fields: memory.MetadataField, Values: record.Record{Metadata: metadata},
		}, ""); !isVersionConflict(err) {
			return err
		}
	}
	return err
}

// counted are the metadata of a playbook that was used once more.
func counted(said string, metadata []byte, at time.Time) ([]byte, error) {
	entry, err := playbook.Parse(said, metadata)
	if err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(metadata, &members); err != nil {
		return nil, err
	}
	if members["usage_count"], err = json.Marshal(entry.UsageCount + 1); err != nil {
		return nil, err
	}
	if members["last_used_at"], err = json.Marshal(at.UTC().Truncate(time.Microsecond)); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
