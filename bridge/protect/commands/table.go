package commands

import "slices"

// Row is something in a workspace that gives commands to a program outside of the sandbox.
type Row struct {
	Tool   string // whose it is
	Path   string // in the form of Set
	Runs   string // what of it runs, and when
	Source string // the document that says so
}

// Paths are the paths of the table.
func Paths() []string {
	paths := make([]string, 0, len(table))
	for _, r := range table {
		paths = append(paths, r.Path)
	}
	return paths
}

// Table is what executes outside.
func Table() []Row { return slices.Clone(table) }

const (
	mcp        = "commands of MCP servers, when it starts"
	everything = "commands of MCP servers, hooks and tasks, when it starts or at its events"
	shell      = "it is read when a shell starts with the workspace as its home"
	gitHook    = "commands of hooks, when git commits, merges or pushes"
)

var table = slices.Concat(ofGit, ofHosts, ofEditors, ofShells)

// ofGit are git's own. Repositories lie at any depth, and a bare one has a name that ends
// in .git; of a repository that programs have made themselves nothing is kept.
var ofGit = []Row{
	{"git", "**/*.git/config", "core.fsmonitor, core.sshCommand, core.pager, filter.*, diff.*, alias.* and others: git status is enough", "https://git-scm.com/docs/git-config"},
	{"git", "**/*.git/config.worktree", "as config, with extensions.worktreeConfig", "https://git-scm.com/docs/git-worktree#_configuration_file"},
	{"git", "**/*.git/hooks", "post-checkout, pre-commit and others", "https://git-scm.com/docs/githooks"},
	{"git", "**/*.git/commondir", "leads to other settings and hooks", "https://git-scm.com/docs/gitrepository-layout"},
	{"git", "**/*.git/info/attributes", "which files the commands of filter.*, diff.* and merge.* get", "https://git-scm.com/docs/gitattributes"},
	{"git", "**/*.git/worktrees/*/config.worktree", "as config", "https://git-scm.com/docs/git-worktree#_configuration_file"},
	{"git", "**/*.git/worktrees/*/commondir", "leads to other settings and hooks", "https://git-scm.com/docs/gitrepository-layout"},
	{"git", "**/*.git/worktrees/*/hooks", "as hooks", "https://git-scm.com/docs/githooks"},
	{"git submodule", "**/*.git/modules", "each has a config and hooks, and git status goes into them", "https://git-scm.com/docs/gitsubmodules"},
	{"Mercurial", ".hg/hgrc", "hooks, extensions and aliases: hg status is enough", "https://www.mercurial-scm.org/doc/hgrc.5.html"},
	{"Mercurial", ".hg/hgrc-not-shared", "as hgrc", "https://www.mercurial-scm.org/doc/hgrc.5.html"},
	{"Jujutsu", ".jj/repo/config.toml", "programs for diffs, merges and signing, and aliases", "https://docs.jj-vcs.dev/latest/config/"},
	{"Jujutsu", ".jj/workspace-config.toml", "as repo/config.toml", "https://docs.jj-vcs.dev/latest/config/"},
	{"git", ".gitconfig", "as config, with the workspace as home", "https://git-scm.com/docs/git-config#FILES"},
	{"git", ".config/git", "as config, with the workspace as home", "https://git-scm.com/docs/git-config#FILES"},
	{"githooks", ".githooks", gitHook + ", where core.hooksPath names it, as is the custom", "https://git-scm.com/docs/git-config#Documentation/git-config.txt-corehooksPath"},
	{"husky", ".husky", gitHook, "https://typicode.github.io/husky/how-to.html"},
	{"husky", ".huskyrc*", gitHook, "https://github.com/typicode/husky/tree/v4.3.8"},
	{"pre-commit", ".pre-commit-config.y*ml", gitHook, "https://pre-commit.com/#adding-pre-commit-plugins-to-your-project"},
	{"pre-commit", ".pre-commit", gitHook, "https://pre-commit.com/"},
	{"lefthook", "lefthook*.*", gitHook, "https://lefthook.dev/configuration/"},
	{"lefthook", ".lefthook*", gitHook, "https://lefthook.dev/configuration/"},
	{"overcommit", ".overcommit.yml", gitHook, "https://github.com/sds/overcommit#configuration"},
	{"overcommit", ".git-hooks", gitHook, "https://github.com/sds/overcommit#repo-specific-hooks"},
	{"simple-git-hooks", ".simple-git-hooks.*", gitHook, "https://github.com/toplenboren/simple-git-hooks"},
	{"lint-staged", ".lintstagedrc*", gitHook, "https://github.com/lint-staged/lint-staged#configuration"},
	{"captain hook", "captainhook.json", gitHook, "https://github.com/captainhookphp/captainhook"},
}

// ofHosts are the rows of coding agents, including the files that `mcp install` writes.
var ofHosts = []Row{
	{"Claude Code", ".mcp.json", mcp, "https://code.claude.com/docs/en/mcp"},
	{"Claude Code", ".claude", everything, "https://code.claude.com/docs/en/hooks"},
	{"Claude Code", ".claude.json", mcp + ", with the workspace as home", "https://code.claude.com/docs/en/settings"},
	{"Claude Code", ".claude-plugin", everything, "https://code.claude.com/docs/en/plugins-reference"},
	{"Codex", ".codex", everything, "https://developers.openai.com/codex/config-reference"},
	{"agents", ".agents", "scripts of skills, and settings that several agents read", "https://agentskills.io/specification"},
	{"Cursor", ".cursor", everything, "https://cursor.com/docs/agent/hooks"},
	{"Gemini CLI", ".gemini", everything, "https://geminicli.com/docs/reference/configuration"},
	{"Qwen Code", ".qwen", everything, "https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings/"},
	{"Windsurf", ".windsurf", everything, "https://docs.windsurf.com/windsurf/cascade/hooks"},
	{"GitHub Copilot", ".github/hooks", "commands of hooks, at its events", "https://docs.github.com/en/copilot/reference/hooks-configuration"},
	{"GitHub Copilot", ".github/mcp.json", mcp, "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers"},
	{"GitHub Copilot", ".github/copilot", everything, "https://docs.github.com/en/copilot/reference/copilot-cli-reference"},
	{"GitHub Copilot", ".github/extensions", "programs, when it starts", "https://docs.github.com/en/copilot/reference/copilot-cli-reference"},
	{"GitHub Copilot", ".copilot", everything, "https://docs.github.com/en/copilot/reference/copilot-cli-reference"},
	{"Kiro", ".kiro", everything, "https://kiro.dev/docs/hooks/actions"},
	{"Roo Code", ".roo", mcp, "https://docs.roocode.com/features/mcp/using-mcp-in-roo"},
	{"Roo Code", ".roomodes", "which of its modes may run commands", "https://docs.roocode.com/features/custom-modes"},
	{"Kilo Code", ".kilocode", mcp, "https://kilo.ai/docs/features/mcp/using-mcp-in-kilo-code"},
	{"Kilo Code", "kilo.json*", mcp, "https://kilo.ai/docs/features/mcp/using-mcp-in-kilo-code"},
	{"Kilo Code", ".kilo", everything, "https://kilo.ai/docs/features/mcp/using-mcp-in-kilo-code"},
	{"Cline", ".cline", everything, "https://docs.cline.bot/features/hooks"},
	{"Cline", ".clinerules", "commands of hooks, at its events", "https://docs.cline.bot/features/hooks"},
	{"Amazon Q", ".amazonq", everything, "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-mcp-configuration.html"},
	{"Continue", ".continue", everything, "https://docs.continue.dev/customize/deep-dives/mcp"},
	{"Continue", ".continuerc.json", everything, "https://docs.continue.dev/reference"},
	{"Trae", ".trae", mcp, "https://docs.trae.ai/ide/add-mcp-servers"},
	{"OpenCode", ".opencode", "plugins and tools are programs, when it starts", "https://opencode.ai/docs/plugins/"},
	{"OpenCode", "opencode.json*", everything, "https://opencode.ai/docs/config/"},
	{"Crush", "crush.json", everything, "https://github.com/charmbracelet/crush#configuration"},
	{"Crush", ".crush*", everything, "https://github.com/charmbracelet/crush#configuration"},
	{"Junie", ".junie", mcp, "https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html"},
	{"JetBrains AI", ".aiassistant", mcp, "https://www.jetbrains.com/help/ai-assistant/mcp.html"},
	{"Augment", ".augment", everything, "https://docs.augmentcode.com/cli/hooks"},
	{"Devin", ".devin", everything, "https://docs.devin.ai/"},
	{"Mastra Code", ".mastracode", mcp, "https://mastra.ai/docs"},
	{"Factory", ".factory", everything, "https://docs.factory.ai/cli/configuration/hooks-guide"},
	{"Amp", ".amp", mcp, "https://ampcode.com/manual"},
	{"Goose", ".goose", everything, "https://block.github.io/goose/docs/guides/config-files"},
	{"Aider", ".aider.conf.yml", "lint-cmd, test-cmd and notifications-command", "https://aider.chat/docs/config/aider_conf.html"},
	{"Warp", ".warp", everything, "https://docs.warp.dev/knowledge-and-collaboration/mcp"},
	{"Zencoder", ".zencoder", mcp, "https://docs.zencoder.ai/features/integrations-and-mcp"},
	{"Tabnine", ".tabnine", mcp, "https://docs.tabnine.com/main/getting-started/tabnine-agent/mcp-intro-and-setup"},
	{"Pi", ".pi", "extensions are programs, when it starts", "https://github.com/badlogic/pi-mono/tree/main/packages/coding-agent"},
	{"Grok CLI", ".grok", everything, "https://github.com/superagent-ai/grok-cli#readme"},
	{"Kimi CLI", ".kimi", mcp + ", with the workspace as home", "https://moonshotai.github.io/kimi-cli/en/customization/mcp.html"},
	{"Mistral Vibe", ".vibe", everything, "https://github.com/mistralai/mistral-vibe#readme"},
	{"OpenHands", ".openhands", "setup.sh and pre-commit.sh, when it starts and commits", "https://docs.openhands.dev/openhands/usage/customization/repository"},
	{"Rovo Dev", ".rovodev", everything, "https://support.atlassian.com/rovo/docs/use-rovo-dev-cli/"},
	{"iFlow", ".iflow", everything, "https://platform.iflow.cn/en/cli/configuration/settings"},
	{"Qoder", ".qoder", everything, "https://docs.qoder.com/cli/hooks"},
	{"CodeBuddy", ".codebuddy", everything, "https://www.codebuddy.ai/docs/cli/hooks"},
	{"Lingma", ".lingma", mcp, "https://www.alibabacloud.com/help/en/lingma/user-guide/guide-for-using-mcp"},
	{"Antigravity", ".antigravity", mcp, "https://antigravity.google/docs/mcp"},
	{"Antigravity", ".agent", everything, "https://antigravity.google/docs/rules-workflows"},
	{"Loom Bridge", ".loom/sandbox.toml", "what tools may do", "server/docs/tools.md"},
}

// ofEditors are the rows of editors and of tools that set up development machines.
var ofEditors = []Row{
	{"VS Code", ".vscode", "tasks on opening a folder, MCP servers, settings that name programs", "https://code.visualstudio.com/docs/editor/workspace-trust"},
	{"VS Code", ".config/Code", "as .vscode, with the workspace as home", "https://code.visualstudio.com/docs/getstarted/settings"},
	{"VS Code", "*.code-workspace", "as .vscode", "https://code.visualstudio.com/docs/editor/workspaces"},
	{"Visual Studio", ".vs", mcp, "https://learn.microsoft.com/visualstudio/ide/mcp-servers"},
	{"JetBrains", ".idea", "startup tasks, run configurations, file watchers", "https://www.jetbrains.com/help/idea/settings-tools-startup-tasks.html"},
	{"JetBrains", ".run", "run configurations", "https://www.jetbrains.com/help/idea/run-debug-configuration.html"},
	{"JetBrains Fleet", ".fleet", "run configurations, settings that name programs", "https://www.jetbrains.com/help/fleet/getting-started-with-run-configurations.html"},
	{"Eclipse", ".externalToolBuilders", "builders, when a project is opened", "https://help.eclipse.org/latest/topic/org.eclipse.platform.doc.user/concepts/concepts-exttools.htm"},
	{"Theia", ".theia", "as .vscode", "https://theia-ide.org/docs/user_getting_started/"},
	{"Zed", ".zed", "tasks, language servers, context servers", "https://zed.dev/docs/configuring-zed"},
	{"Vim", ".vimrc", "with 'exrc', when it starts", "https://vimhelp.org/options.txt.html#%27exrc%27"},
	{"Vim", ".exrc", "with 'exrc', when it starts", "https://vimhelp.org/options.txt.html#%27exrc%27"},
	{"Neovim", ".nvim.lua", "with 'exrc', when it starts", "https://neovim.io/doc/user/options.html#'exrc'"},
	{"Neovim", ".nvimrc", "with 'exrc', when it starts", "https://neovim.io/doc/user/options.html#'exrc'"},
	{"Emacs", ".dir-locals*.el", "eval, when a file is opened", "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html"},
	{"Sublime Text", "*.sublime-project", "build systems, settings", "https://www.sublimetext.com/docs/projects.html"},
	{"Nova", ".nova", "tasks", "https://docs.nova.app/api-reference/tasks-provider/"},
	{"Helix", ".helix", "commands of language servers and formatters", "https://docs.helix-editor.com/configuration.html"},
	{"Dev containers", ".devcontainer", "initializeCommand runs on the machine itself", "https://containers.dev/implementors/json_reference/#lifecycle-scripts"},
	{"Dev containers", ".devcontainer.json", "initializeCommand runs on the machine itself", "https://containers.dev/implementors/json_reference/#lifecycle-scripts"},
	{"Gitpod", ".gitpod.yml", "tasks, when a workspace starts", "https://www.gitpod.io/docs/references/gitpod-yml"},
	{"Ona", ".ona", "tasks, when an environment starts", "https://ona.com/docs/ona/configuration/tasks-and-services/overview"},
	{"IDX", ".idx", "onCreate and onStart", "https://firebase.google.com/docs/studio/devnix-reference"},
	{"Replit", ".replit", "onBoot", "https://docs.replit.com/replit-app/configuration"},
	{"CodeSandbox", ".codesandbox", "setupTasks", "https://codesandbox.io/docs/learn/repositories/task"},
}

// ofShells are the rows of shells, and of tools that run when a shell enters a folder.
var ofShells = []Row{
	{"direnv", ".envrc", "when a shell goes in", "https://direnv.net/man/direnv.1.html"},
	{"direnv, dotenv", ".env", "variables such as LD_PRELOAD and NODE_OPTIONS, of whatever loads it", "https://direnv.net/man/direnv-stdlib.1.html"},
	{"dotenv", ".env.local", "as .env", "https://github.com/motdotla/dotenv#readme"},
	{"mise", "mise*.toml", "hooks, when a shell goes in, and tasks", "https://mise.jdx.dev/hooks.html"},
	{"mise", ".mise*", "hooks, when a shell goes in, and tasks", "https://mise.jdx.dev/configuration.html"},
	{"mise", "mise/config*.toml", "hooks, when a shell goes in, and tasks", "https://mise.jdx.dev/configuration.html"},
	{"mise", "mise/tasks", "tasks", "https://mise.jdx.dev/tasks/file-tasks.html"},
	{"mise", "mise-tasks", "tasks", "https://mise.jdx.dev/tasks/file-tasks.html"},
	{"mise", ".config/mise*", "hooks, when a shell goes in, and tasks", "https://mise.jdx.dev/configuration.html"},
	{"asdf, mise", ".tool-versions", "which program a name starts, paths among them", "https://asdf-vm.com/manage/configuration.html"},
	{"asdf", ".asdfrc", "hooks", "https://asdf-vm.com/manage/configuration.html"},
	{"devenv", "devenv*.nix", "enterShell", "https://devenv.sh/basics/"},
	{"devenv", "devenv.yaml", "enterShell, of what it imports", "https://devenv.sh/basics/"},
	{"autoenv", ".autoenv*", "when a shell goes in", "https://github.com/hyperupcall/autoenv"},
	{"shadowenv", ".shadowenv.d", "when a shell goes in", "https://shopify.github.io/shadowenv/"},
	{"shells", ".bashrc", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".bash_profile", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".bash_login", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".bash_logout", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".bash_aliases", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".profile", shell, "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"},
	{"shells", ".inputrc", shell, "https://tiswww.case.edu/php/chet/readline/rltop.html"},
	{"shells", ".zshrc", shell, "https://zsh.sourceforge.io/Doc/Release/Files.html"},
	{"shells", ".zshenv", shell, "https://zsh.sourceforge.io/Doc/Release/Files.html"},
	{"shells", ".zprofile", shell, "https://zsh.sourceforge.io/Doc/Release/Files.html"},
	{"shells", ".zlogin", shell, "https://zsh.sourceforge.io/Doc/Release/Files.html"},
	{"shells", ".zlogout", shell, "https://zsh.sourceforge.io/Doc/Release/Files.html"},
	{"shells", ".kshrc", shell, "https://man7.org/linux/man-pages/man1/ksh93.1.html"},
	{"shells", ".cshrc", shell, "https://www.tcsh.org/"},
	{"shells", ".tcshrc", shell, "https://www.tcsh.org/"},
	{"shells", ".config/fish", shell, "https://fishshell.com/docs/current/language.html#configuration-files"},
	{"sessions", ".config/autostart", "when a session begins, with the workspace as home", "https://specifications.freedesktop.org/autostart-spec/latest/"},
	{"sessions", ".config/systemd", "when a session begins, with the workspace as home", "https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html"},
	{"sessions", ".xprofile", "when a session begins, with the workspace as home", "https://wiki.archlinux.org/title/Xprofile"},
	{"sessions", ".pam_environment", "when a session begins, with the workspace as home", "https://man7.org/linux/man-pages/man7/pam_env.7.html"},
	{"ssh", ".ssh", "ProxyCommand, authorized_keys, with the workspace as home", "https://man.openbsd.org/ssh_config"},
	{"gdb", ".gdbinit", "when it starts", "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html"},
	{"lldb", ".lldbinit", "when it starts", "https://lldb.llvm.org/man/lldb.html"},
	{"R", ".Rprofile", "when it starts", "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html"},
	{"GHCi", ".ghci", "when it starts", "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html#the-ghci-and-haskeline-files"},
	{"OCaml", ".ocamlinit", "when its toplevel starts", "https://ocaml.org/manual/toplevel.html"},
	{"Octave", ".octaverc", "when it starts", "https://docs.octave.org/latest/Startup-Files.html"},
	{"Ruby", ".irbrc", "when irb starts", "https://docs.ruby-lang.org/en/master/IRB.html"},
	{"Ruby", ".pryrc", "when pry starts", "https://github.com/pry/pry/wiki/Pry-rc"},
	{"tmux", ".tmux.conf", "when it starts, with the workspace as home", "https://man7.org/linux/man-pages/man1/tmux.1.html"},
	{"npm", ".npmrc", "script-shell, git and node-options, of every command of npm", "https://docs.npmjs.com/cli/configuring-npm/npmrc"},
	{"pnpm", ".pnpmfile.cjs", "a program, of every installation", "https://pnpm.io/pnpmfile"},
	{"Yarn", ".yarnrc*", "yarnPath and plugins are programs, of every command of yarn", "https://yarnpkg.com/configuration/yarnrc"},
	{"Yarn", ".yarn/releases", "the program itself", "https://yarnpkg.com/configuration/yarnrc#yarnPath"},
	{"Yarn", ".yarn/plugins", "programs, of every command of yarn", "https://yarnpkg.com/configuration/yarnrc#plugins"},
	{"Cargo", ".cargo", "rustc-wrapper, runner, linker, also when an editor opens a folder", "https://doc.rust-lang.org/cargo/reference/config.html"},
	{"Maven", ".mvn/extensions.xml", "programs, of every command of Maven, also when an editor opens a folder", "https://maven.apache.org/configure.html"},
	{"Maven", ".mvn/jvm.config", "agents of its virtual machine, as extensions.xml", "https://maven.apache.org/configure.html"},
	{"watchman", ".watchmanconfig", "triggers", "https://facebook.github.io/watchman/docs/config"},
}
