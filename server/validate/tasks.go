package validate

import (
	"github.com/loom-bridge/loom-bridge/context/session"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// task checks the form of a task.
func (c *checker) task(prefix string, t *loombridgev1.Task) {
	if t == nil {
		return
	}
	c.name(prefix+"task_id", t.GetTaskId(), session.MaxTaskIDBytes)
	c.requiredName(prefix+"action", t.GetAction(), session.MaxActionBytes)
	c.text(prefix+"parameters_json", t.GetParametersJson(), session.MaxParametersBytes)
	c.name(prefix+"source_agent", t.GetSourceAgent(), session.MaxTaskAgentBytes)
	c.name(prefix+"target_agent", t.GetTargetAgent(), session.MaxTaskAgentBytes)
	c.name(prefix+"parent_task_id", t.GetParentTaskId(), session.MaxTaskIDBytes)
	c.text(prefix+"result", t.GetResult(), session.MaxTaskResultBytes)
	c.count(prefix+"tags", len(t.GetTags()), session.MaxTaskTags)
	c.names(prefix+"tags", t.GetTags(), session.MaxTaskTagBytes)
	if t.Importance != nil {
		c.share(prefix+"importance", t.GetImportance())
	}
	c.time(prefix+"create_time", t.GetCreateTime())
}
