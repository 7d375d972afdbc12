package recall

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Skills are the records of the kind `skill` of an agent; see SkillsOf.
type Skills struct{ Store Store }

// Name is that of the section.
func (s *Skills) Name() string { return settings.SkillTexts }

// Collect returns the skills that the settings do not declare themselves.
func (s *Skills) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	return s.collect(ctx, s.Store.At(a.View), a)
}

// Remembered is Collect without a search.
func (s *Skills) Remembered(ctx context.Context, a *gather.Ask) (gather.Found, bool, error) {
	return remembered(s.Store, a, func(view memory.View) (gather.Found, error) { return s.collect(ctx, view, a) })
}

func (s *Skills) collect(ctx context.Context, view memory.View, a *gather.Ask) (gather.Found, error) {
	all, err := SkillsOf(ctx, view, a.Scope)
	if err != nil {
		return gather.Found{}, err
	}
	declared := func(recorded settings.Skill) bool {
		return slices.ContainsFunc(a.Settings.Skills, func(s settings.Skill) bool { return s.Name == recorded.Name })
	}
	return gather.Found{Skills: slices.DeleteFunc(all, declared)}, nil
}

// Lister lists records. *memory.Store and memory.View are such.
type Lister interface {
	List(ctx context.Context, scope kv.Scope, l memory.Listing) (memory.Page, error)
}

const (
	skillFilter = `kind = "` + KindSkill + `"`
	// maxSkillRecords bounds the records that are looked at for skills: some are replaced,
	// or nothing.
	maxSkillRecords = 4 * settings.MaxSkills
)

// SkillsOf returns the skills that an agent's records are, each name once, in the order of
// their saving and at most settings.MaxSkills: the text is what the model reads while
// the skill is active, the metadata say name, description and tools.
//
// Skills stand in the system message. So only the agent's own records are skills, not a
// user's records, which other agents write, too. Records from tool output or the web are no
// skills, and neither are unapproved records of a model or an import.
func SkillsOf(ctx context.Context, from Lister, scope kv.Scope) ([]settings.Skill, error) {
	var all []settings.Skill
	listing := memory.Listing{Filter: skillFilter, PageSize: settings.MaxSkills}
	for read := 0; read < maxSkillRecords; {
		page, err := from.List(ctx, scope, listing)
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			skill, ok := skillOf(&page.Records[i])
			there := slices.ContainsFunc(all, func(other settings.Skill) bool { return other.Name == skill.Name })
			if ok && !there && len(all) < settings.MaxSkills {
				all = append(all, skill)
			}
		}
		read += len(page.Records)
		if listing.PageToken = page.NextPageToken; listing.PageToken == "" || len(page.Records) == 0 {
			break
		}
	}
	return all, nil
}

// skillOf is the skill that a record is; false where it is none.
func skillOf(r *record.Record) (settings.Skill, bool) {
	if r.Archived || r.SupersededBy != "" || !r.Vouched() || r.Review.Hides() {
		return settings.Skill{}, false
	}
	return settings.SkillOf(r.Text, r.Key, r.Metadata)
}
