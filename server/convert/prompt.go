package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/settings"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// PromptSettings reads settings; what is unset stays zero. Nil stays nil.
func PromptSettings(p *loombridgev1.PromptSettings) *settings.Prompt {
	if p == nil {
		return nil
	}
	out := &settings.Prompt{
		Layout: settings.Layout(nameOf(p.GetLayout())), System: p.GetSystem(), Tools: toolsToSet(p.GetTools()), Sources: sourcesToSet(p.GetSources()),
		AgentsMD: p.GetAgentsMd(), UserID: p.GetUserId(), OutputTokens: int(p.GetMaxOutputTokens()),
		Rendering: settings.Rendering(nameOf(p.GetToolRendering())), Position: settings.Position(nameOf(p.GetRuntimePosition())),
		Limits: settings.Limits{Total: int(p.GetLimits().GetTotal())},
	}
	if p.Variation != nil {
		out.Variation = settings.Variation{Disabled: new(p.GetVariation() == 0), Level: p.Variation}
	}
	if sections := p.GetLimits().GetSections(); len(sections) > 0 {
		out.Limits.Sections = make(map[string]int, len(sections))
		for name, tokens := range sections {
			out.Limits.Sections[name] = int(tokens)
		}
	}
	for _, e := range p.GetFewShot() {
		out.FewShot = append(out.FewShot, settings.Example{Input: e.GetInput(), Output: e.GetOutput()})
	}
	for _, s := range p.GetSkills() {
		out.Skills = append(out.Skills, settings.Skill{
			Name: s.GetName(), Description: s.GetDescription(), Text: s.GetText(), Tools: s.GetTools(), Active: s.GetActive(),
		})
	}
	for _, i := range p.GetInjections() {
		out.Injections = append(out.Injections, settings.Injection{
			Name: i.GetName(), Phase: int(i.GetPhase()), Strategy: int(i.GetCache()), Priority: priorityFrom(i.Priority),
			MaxTokens: int(i.GetMaxTokens()), Tag: i.GetXmlTag(), Content: i.GetContent(),
		})
	}
	return out
}

func priorityFrom(p *int32) *int {
	if p == nil {
		return nil
	}
	return new(int(*p))
}

func priorityTo(p *int) *int32 {
	if p == nil {
		return nil
	}
	return new(Int32(*p))
}

func toolsToSet(t *loombridgev1.ToolSelection) *settings.Tools {
	if t == nil {
		return nil
	}
	out := &settings.Tools{None: t.GetNone(), Names: t.GetNames()}
	for _, level := range t.GetLevels() {
		out.Levels = append(out.Levels, int(level))
	}
	return out
}

func sourcesToSet(s *loombridgev1.SourceSettings) settings.Sources {
	return settings.Sources{
		Exclude: s.GetExclude(), Layers: s.GetMemoryLayers(), UserMemories: int(s.GetUserMemories()), Knowledge: int(s.GetKnowledge()),
		KnowledgeTimeout: spanOf(s.GetKnowledgeTimeout()), EventActions: s.GetEventActions(), Instructors: s.GetInstructors(),
	}
}

// variationOf is how often forms vary; nil where that is not set.
func variationOf(v settings.Variation) *float64 {
	if v.Disabled != nil && *v.Disabled {
		return new(0.0)
	}
	return v.Level
}

// promptSettingsOf writes settings; nil for none.
func promptSettingsOf(p *settings.Prompt) *loombridgev1.PromptSettings {
	if p == nil {
		return nil
	}
	out := &loombridgev1.PromptSettings{
		Layout: enumOf[loombridgev1.PromptLayout](string(p.Layout)), System: p.System, Sources: sourcesOf(&p.Sources), AgentsMd: p.AgentsMD, UserId: p.UserID,
		ToolRendering: enumOf[loombridgev1.ToolRendering](string(p.Rendering)), RuntimePosition: enumOf[loombridgev1.RuntimePosition](string(p.Position)),
		MaxOutputTokens: Int32(p.OutputTokens),
		Variation:       variationOf(p.Variation),
		Limits:          &loombridgev1.InjectionLimits{Total: Int32(p.Limits.Total)},
	}
	if t := p.Tools; t != nil {
		out.Tools = &loombridgev1.ToolSelection{None: t.None, Names: t.Names}
		for _, level := range t.Levels {
			out.Tools.Levels = append(out.Tools.Levels, Int32(level))
		}
	}
	for name, tokens := range p.Limits.Sections {
		if out.Limits.Sections == nil {
			out.Limits.Sections = make(map[string]int32, len(p.Limits.Sections))
		}
		out.Limits.Sections[name] = Int32(tokens)
	}
	for _, e := range p.FewShot {
		out.FewShot = append(out.FewShot, &loombridgev1.Example{Input: e.Input, Output: e.Output})
	}
	for _, s := range p.Skills {
		out.Skills = append(out.Skills, &loombridgev1.Skill{Name: s.Name, Description: s.Description, Text: s.Text, Tools: s.Tools, Active: s.Active})
	}
	for _, i := range p.Injections {
		out.Injections = append(out.Injections, &loombridgev1.Injection{
			Name: i.Name, Phase: loombridgev1.InjectionPhase(i.Phase), Cache: loombridgev1.CacheStrategy(i.Strategy), Priority: priorityTo(i.Priority),
			MaxTokens: Int32(i.MaxTokens), XmlTag: i.Tag, Content: i.Content,
		})
	}
	return out
}

func sectionsOf(sections []assemble.Section) []*loombridgev1.SectionInfo {
	out := make([]*loombridgev1.SectionInfo, len(sections))
	for i := range sections {
		s := &sections[i]
		out[i] = &loombridgev1.SectionInfo{
			Name:   s.Name,
			Tokens: Int32(s.Tokens), BeforeTokens: Int32(s.Before), MaxTokens: Int32(s.MaxTokens),
			Outcome: loombridgev1.SectionOutcome(s.Outcome), Reason: utf8Text(s.Reason), Source: s.Source, Refs: s.Refs, LeftOut: s.LeftOut,
		}
	}
	return out
}

func sourcesOf(s *settings.Sources) *loombridgev1.SourceSettings {
	return &loombridgev1.SourceSettings{
		Exclude: s.Exclude, MemoryLayers: s.Layers, UserMemories: Int32(s.UserMemories), Knowledge: Int32(s.Knowledge),
		KnowledgeTimeout: spanTo(s.KnowledgeTimeout), EventActions: s.EventActions, Instructors: s.Instructors,
	}
}

func spanTo(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
