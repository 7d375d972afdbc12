package convert

import (
	"github.com/loom-bridge/loom-bridge/context/instruct"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// PromptTexts says what holds for the texts that can enter prompts.
func PromptTexts(rows []instruct.Row) []*loombridgev1.PromptText {
	out := make([]*loombridgev1.PromptText, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = &loombridgev1.PromptText{
			Source: string(r.Source), About: r.About, Writers: r.Writers.Names(), Instructors: r.Instructors.Names(), InstructorRole: loombridgev1.Role(r.Role),
			Role: loombridgev1.Role(r.Otherwise), Frame: r.Frame, Removers: r.Removers.Names(),
		}
	}
	return out
}
