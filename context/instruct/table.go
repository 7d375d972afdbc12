package instruct

import "github.com/loom-bridge/loom-bridge/context/session"

// The sources.
const (
	System     Source = "system"
	Tools      Source = "tools"
	OtherTools Source = "tools:others"
	Skills     Source = "skills"
	FewShot    Source = "few_shot"
	Caller     Source = "caller"
	Agents     Source = "notes:agents_md"
	Notes      Source = "notes"
	UserMemory Source = "user_memory"
	Knowledge  Source = "knowledge"
	Playbook   Source = "playbook"
	Direct     Source = "tasks:message"
	Plans      Source = "tasks:plan"
	Execute    Source = "tasks:execute"
	Tasks      Source = "tasks"
	ChildGoal  Source = "goal:child"
	Messages   Source = "history:messages"
	Results    Source = "history:results"
	Folds      Source = "history:folds"
	Collapsed  Source = "history:collapsed"
	Rehydrated Source = "rehydrated"
	Working    Source = "working"
	Plan       Source = "plan"
	Progress   Source = "progress"
	Errors     Source = "errors"
	Timestamps Source = "timestamps"
	Goal       Source = "goal"
)

const (
	own       = Operator | Program
	lineFrame = "a line each, guarded"
)

var table = []Row{
	{
		Source: System, About: "the system prompt of the request or the session's settings",
		Writers: own, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User, Frame: "as it came",
	},
	{
		Source: Tools, About: "tools as text: the request's own, and those that the server ships",
		Writers: own, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User,
		Frame: "<tool name=…>, guarded",
	},
	{
		Source: OtherTools, About: "tools as text: those of other agents and of servers of the Model Context Protocol",
		Writers: Agent | Tool, Removers: own | Agent | Tool, Otherwise: session.User, Frame: "<tool name=…>, guarded",
	},
	{
		Source: Skills, About: "skills of the settings, and the agent's own records of the kind skill",
		Writers: own | Model | Import, Instructors: own, Removers: own, Role: session.System, Otherwise: 0,
		Frame: "`# Skill: name`, guarded; those of a model or an import are shown once they are approved",
	},
	{
		Source: FewShot, About: "examples of the settings",
		Writers: own, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User, Frame: "messages, or lines, of their own",
	},
	{
		Source: Caller, About: "sections of the request or the session's settings",
		Writers: own, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User, Frame: "the tag that they name, guarded",
	},
	{
		Source: Agents, About: "rule files of the workspace, or the text of the settings in their place",
		Writers: own | Tool | Model, Removers: own | Tool | Model, Otherwise: session.User, Frame: "<agents_md>, guarded",
	},
	{
		Source: Notes, About: "records of the kind note, and pinned ones",
		Writers: own | Agent | Model | Import, Removers: own, Otherwise: session.User, Frame: "<notes>, " + lineFrame,
	},
	{
		Source: UserMemory, About: "what agent and user have saved",
		Writers: own | Agent | Model | Tool | Import, Removers: own | Agent | Model, Otherwise: session.User, Frame: "<user_memory>, " + lineFrame,
	},
	{
		Source: Knowledge, About: "records of the kind knowledge, and answers of an endpoint",
		Writers: own | Agent | Model | Tool | Import, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User,
		Frame: "<knowledge_context> of the user; in layout task_context a message each that begins with 📚 Knowledge, of the system where the agent's program wrote it",
	},
	{
		Source: Playbook, About: "approved records of the kind playbook",
		Writers: own | Agent | Model | Import, Removers: own, Otherwise: session.User,
		Frame: "<playbook_hint>, guarded; those of a model or an import are shown once they are approved",
	},
	{
		Source: Direct, About: "direct messages of agents",
		Writers: Instructor | Agent | Model, Instructors: Instructor, Removers: own | Agent, Role: session.System, Otherwise: session.Assistant,
		Frame: "[Direct message from name], guarded; the role that it asks for is given to senders alone that the settings name as instructors, and to no model's tool",
	},
	{
		Source: Plans, About: "tasks and events of plans",
		Writers: Program | Instructor | Agent, Instructors: Program | Instructor, Removers: own, Role: session.System, Otherwise: session.Assistant,
		Frame: "[Parent Plan], with who else wrote it, a line each part",
	},
	{
		Source: Execute, About: "tasks and events that ask for something",
		Writers: Program | Instructor | Agent, Instructors: Program | Instructor, Removers: own, Role: session.User, Otherwise: session.Assistant,
		Frame: "[From name] where it is another agent's, guarded",
	},
	{
		Source: Tasks, About: "other tasks and events: thoughts, calls, delegations",
		Writers: Program | Agent | Model, Removers: own, Otherwise: session.Assistant,
		Frame: "[Calling …], [Delegation …], [From name] where it is another agent's, guarded",
	},
	{
		Source: ChildGoal, About: "the goal that a child was made with",
		Writers: Parent | Model, Instructors: Parent, Removers: own | Parent, Role: session.System, Otherwise: session.User,
		Frame: "Goal: …, guarded",
	},
	{
		Source: Messages, About: "messages of the session's log, appended or imported with it by the agent's program",
		Writers: own, Instructors: own, Removers: own, Role: session.System, Otherwise: session.User, Frame: "as they came",
	},
	{
		Source: Results, About: "steps: what tools were called with, and gave",
		Writers: Program | Model | Tool | Agent, Removers: own, Otherwise: session.Tool, Frame: "a result of its call, marks of folds guarded",
	},
	{
		Source: Folds, About: "what stands for earlier steps and messages",
		Writers: Everybody, Removers: own, Otherwise: session.User, Frame: "[Earlier steps …], a line each",
	},
	{
		Source: Collapsed, About: "what stands for the middle of a history under pressure",
		Writers: Everybody, Removers: own, Otherwise: session.User, Frame: "[collapsed n messages …], with the role of each",
	},
	{
		Source: Rehydrated, About: "lines of folded results that are of use again",
		Writers: Model | Tool | Agent, Removers: own, Otherwise: session.User, Frame: "<rehydrated>, guarded",
	},
	{
		Source: Working, About: "what the agent noted of its work",
		Writers: own, Removers: own, Otherwise: session.User, Frame: "a section of its own",
	},
	{
		Source: Plan, About: "the goal and the plan",
		Writers: own, Removers: own, Otherwise: session.User, Frame: "Plan (n/m), " + lineFrame,
	},
	{
		Source: Progress, About: "how far the plan is",
		Writers: own, Removers: own, Otherwise: session.User, Frame: "a line of numbers",
	},
	{
		Source: Errors, About: "calls that failed",
		Writers: Model | Tool | Agent, Removers: own, Otherwise: session.User, Frame: "Past errors:, " + lineFrame,
	},
	{
		Source: Timestamps, About: "time stamps taken out of cached sections",
		Writers: Everybody, Removers: own, Otherwise: session.User, Frame: "Timestamps:, stamps alone",
	},
	{
		Source: Goal, About: "the goal of the request or the session",
		Writers: own | Parent, Instructors: own | Parent, Removers: own, Role: session.User, Otherwise: session.User, Frame: "Current Goal: or Goal:, guarded",
	},
}
