package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Skills are the records of the kind `skill` of an agent and of the user: the text is
// what the model is told while the skill is active, the metadata say name, description
// and tools. The record's key is its name where they don't.
type Skills struct{ Store Store }

// Name is that of the section.
func (s *Skills) Name() string { return settings.SkillTexts }

// Collect returns the skills that the settings do not declare themselves.
func (s *Skills) Collect(ctx context.Context, a *gather.Ask) (gather.Found, error) {
	all, err := s.Recorded(ctx, a.View, scopesOf(a))
	if err != nil {
		return gather.Found{}, err
	}
	declared := func(recorded settings.Skill) bool {
		return slices.ContainsFunc(a.Settings.Skills, func(s settings.Skill) bool { return s.Name == recorded.Name })
	}
	return gather.Found{Skills: slices.DeleteFunc(all, declared)}, nil
}

const skillFilter = `kind = "` + KindSkill + `"`

// Recorded returns the skills of some scopes, each name once: in the order of the scopes,
// and there in that of their saving. A record that is no skill is passed over.
func (s *Skills) Recorded(ctx context.Context, view kv.Reader, scopes []kv.Scope) ([]settings.Skill, error) {
	var all []settings.Skill
	for _, scope := range scopes {
		page, err := s.Store.At(view).List(ctx, scope, memory.Listing{Filter: skillFilter, PageSize: settings.MaxSkills})
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
	}
	return all, nil
}

// skillOf is the skill that a record is; false where it is none.
func skillOf(r *record.Record) (settings.Skill, bool) {
	var m struct {
		Name, Description string
		Tools             []string
	}
	if len(r.Metadata) > 0 && json.Unmarshal(r.Metadata, &m) != nil || r.Archived || r.SupersededBy != "" {
		return settings.Skill{}, false
	}
	s := settings.Skill{
		Name: text.OneLine(cmp.Or(m.Name, r.Key)), Description: text.Cut(text.OneLine(m.Description), settings.MaxDescriptionBytes-len(text.Ellipsis), text.Ellipsis),
		Text: text.Head(r.Text, settings.MaxSkillBytes), Tools: m.Tools[:min(len(m.Tools), settings.MaxSkillTools)],
	}
	return s, s.Name != "" && len(s.Name) <= settings.MaxSkillNameBytes
}
