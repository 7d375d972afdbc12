package gather

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// How long texts stay as they are unless settings say otherwise.
const (
	stableTTL  = time.Hour
	sessionTTL = 5 * time.Minute
)

// A new block takes at most keptShare of keptOf of its cap, but its first item in any
// case: the rest is left to what later prompts find, which could not be shown otherwise
// before the block's time is over. What does not fit it stands in the part that is not
// kept.
const (
	keptShare = 2
	keptOf    = 3
)

// keptKey names a session's block.
type keptKey struct {
	scope   kv.Scope
	session string
	section string
}

// kept is a block as it stands in a session's prompts. It is never changed.
type kept struct {
	injection inject.Injection // empty text where nothing was found
	items     []Item
	tokens    int
	until     time.Time
	input     string
	limit     int
	// packs names what the newest prompt packed beside the block, packed and left are what
	// became of it.
	packs  string
	packed []Item
	left   []string
}

func keyOf(a *Ask, section string) keptKey {
	return keptKey{a.Scope, cmp.Or(a.SessionID, session.DefaultSession), section}
}

// Forget drops the blocks that stand in prompts of scopes.
func (g *Gatherer) Forget(match func(kv.Scope) bool) {
	g.kept.DeleteFunc(func(k keptKey) bool { return match(k.scope) })
}

// shown are the items of a block that stands.
func (g *Gatherer) shown(a *Ask, section string) []Item {
	k, _ := g.kept.Get(keyOf(a, section))
	return k.items
}

// place adds a block: what stands of it, or a new one, and what was found beyond. It
// returns the refs of what was found for this prompt and is shown.
func (g *Gatherer) place(all *Gathered, a *Ask, section string, b *Block) []string {
	k, stands := g.kept.Get(keyOf(a, section))
	stands = stands && k.stays(a, b)
	var left []string
	if b.Pack != nil {
		room := b.Frame.MaxTokens
		if stands && room > 0 {
			room = max(room-k.tokens, 1)
		}
		shown := func(ref string) bool { return stands && k.showsWhole(ref) || all.shows(section, ref) }
		packs := b.Packs(shown)
		if !stands || k.packs != packs {
			b.Items, left = b.Pack(room, shown)
		} else {
			b.Items, left = k.packed, k.left
		}
		if stands && k.packs != packs && !a.DryRun {
			k.packs, k.packed, k.left = packs, b.Items, left
			g.kept.Put(keyOf(a, section), k, k.bytes(section))
		}
	}
	if !stands {
		k = b.make(a)
		if !a.DryRun {
			g.kept.Put(keyOf(a, section), k, k.bytes(section))
		}
	}
	all.LeftOut[section] = append(all.LeftOut[section], left...)
	var refs []string
	if k.injection.Text != "" {
		all.Injections = append(all.Injections, k.injection)
		all.Refs[k.injection.Name] = refsOf(k.items)
		for _, item := range b.Items {
			if k.shows(item.Ref) {
				refs = append(refs, item.Ref)
			}
		}
	}
	if more, items := b.beyond(a, &k, all.LeftOut, section); more.Text != "" {
		all.Injections = append(all.Injections, more)
		all.Refs[more.Name] = refsOf(items)
		refs = append(refs, refsOf(items)...)
	}
	return refs
}

// shows reports whether a section other than that one shows what a ref names.
func (g *Gathered) shows(section, ref string) bool {
	for name, refs := range g.Refs {
		if name != section && slices.Contains(refs, ref) {
			return true
		}
	}
	return false
}

// stays reports whether this prompt shows a kept block, too.
func (k *kept) stays(a *Ask, b *Block) bool {
	return a.Now.Before(k.until) && k.input == b.Input && k.limit == b.Frame.MaxTokens && (!b.Stale || a.KeepOnWrite)
}

func (k *kept) shows(ref string) bool {
	return slices.ContainsFunc(k.items, func(item Item) bool { return item.Ref == ref })
}

func (k *kept) showsWhole(ref string) bool {
	return slices.ContainsFunc(k.items, func(item Item) bool { return item.Ref == ref && !item.Part })
}

// says reports whether the block shows an item already: all that it names, or the same part
// of it.
func (k *kept) says(item *Item) bool {
	return slices.ContainsFunc(k.items, func(own Item) bool { return own.Ref == item.Ref && (!own.Part || own.Text == item.Text) })
}

// bytes is about what it takes in memory.
func (k *kept) bytes(section string) int {
	const fixed, perItem = 512, 64
	n := fixed + len(section) + 2*len(k.injection.Text) + len(k.input) + len(k.packs)
	for _, item := range k.packed {
		n += perItem + len(item.Ref) + len(item.Version) + len(item.Text)
	}
	for _, ref := range k.left {
		n += len(ref)
	}
	for _, item := range k.items {
		n += perItem + len(item.Ref) + len(item.Version)
	}
	return n
}

// make makes the block anew.
func (b *Block) make(a *Ask) kept {
	k := kept{until: a.Now.Add(keptFor(b.Frame.Cache == inject.Stable)), input: b.Input, limit: b.Frame.MaxTokens}
	limit := b.Frame.MaxTokens
	if note := b.note(); note != "" && limit > 2*a.Count(note) {
		limit -= a.Count(note) + joinTokens // what is left out is said in any case
	}
	w := writer{block: b, count: a.Count, limit: limit, share: limit * keptShare / keptOf}
	for _, item := range b.Items {
		w.add(item)
	}
	k.items, k.tokens, k.injection = w.items, w.tokens(), b.Frame
	k.injection.Text = w.text.String()
	if len(k.items) > 0 {
		k.injection.Attributes = cmp.Or(k.items[0].Attributes, b.Frame.Attributes)
	}
	return k
}

// beyond is what was found beyond a kept block, as far as it fits under the cap of both.
func (b *Block) beyond(a *Ask, k *kept, leftOut map[string][]string, section string) (inject.Injection, []Item) {
	more := b.Frame
	more.Name, more.Phase, more.Cache = b.NewName, inject.Runtime, inject.Dynamic
	limit := 0
	if b.Frame.MaxTokens > 0 {
		if limit = b.Frame.MaxTokens - k.tokens; limit <= 0 {
			limit = -1
		}
	}
	w, left := b.write(a, k, limit)
	note := ""
	if len(left) > 0 || b.More {
		note = b.note()
	}
	if takes := a.Count(note); limit != 0 && takes > limit {
		note = ""
	} else if limit != 0 && note != "" {
		w, left = b.write(a, k, cmp.Or(max(limit-takes-joinTokens, 0), -1))
	}
	leftOut[section] = append(leftOut[section], left...)
	more.Text, more.MaxTokens = strings.TrimPrefix(w.text.String()+"\n"+note, "\n"), max(limit, 0)
	if note == "" {
		more.Text = w.text.String()
	}
	if len(w.items) > 0 {
		more.Attributes = cmp.Or(w.items[0].Attributes, b.Frame.Attributes)
	}
	return more, w.items
}

// note is what says that not all is shown; empty for nothing.
func (b *Block) note() string {
	if b.Rest == "" {
		return ""
	}
	return "[" + b.Rest + "]"
}

// write writes what a kept block does not show, and returns the refs of what does not fit.
func (b *Block) write(a *Ask, k *kept, limit int) (w *writer, left []string) {
	w = &writer{block: b, count: a.Count, limit: limit, share: limit, number: len(k.items)}
	for _, item := range b.Items {
		if !k.says(&item) && !w.add(item) {
			left = append(left, item.Ref)
		}
	}
	return w, left
}

func refsOf(items []Item) []string {
	refs := make([]string, len(items))
	for i, item := range items {
		refs[i] = item.Ref
	}
	return refs
}

// writer writes the items of a block that fit.
type writer struct {
	block  *Block
	count  func(string) int
	limit  int // tokens of all; 0 is none, less leaves no room
	share  int // tokens of all but the first item
	number int // of the item before
	text   strings.Builder
	items  []Item
	sum    int
}

// add writes an item, unless it does not fit. The first one is cut to the limit if it is
// too long for it alone and there is nothing else.
func (w *writer) add(item Item) bool {
	if w.limit < 0 {
		return false
	}
	written := item.Text
	if w.block.Write != nil {
		written = w.block.Write(w.number+1, item)
	}
	if strings.TrimSpace(written) == "" {
		return false
	}
	tokens := w.count(written)
	first := len(w.items) == 0
	if first && w.limit > 0 && tokens > w.limit && w.number == 0 {
		written = inject.Beginning(written, w.limit, w.block.Rest, w.count)
		if strings.TrimSpace(written) == "" {
			return false
		}
		tokens = w.count(written)
	}
	if !first {
		written = cmp.Or(w.block.Between, "\n") + written
		tokens += joinTokens
	}
	if w.limit > 0 && w.sum+tokens > w.bound(first) {
		return false
	}
	w.text.WriteString(written)
	w.items = append(w.items, item)
	w.sum += tokens
	w.number++
	return true
}

// joinTokens is the most that a line break next to a text adds to its tokens.
const joinTokens = 1

func (w *writer) bound(first bool) int {
	if first {
		return w.limit
	}
	return w.share
}

// tokens returns the tokens of the text.
func (w *writer) tokens() int {
	if w.text.Len() == 0 {
		return 0
	}
	return w.count(w.text.String())
}
