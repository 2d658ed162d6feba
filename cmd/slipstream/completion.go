package main

import (
	"github.com/spf13/cobra"
)

func (p program) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print the completion script of a shell",
		Long: `Completion prints a script that makes the shell complete commands, flags and file
names of slipstream.`,
		Example: `  source <(slipstream completion bash)                                  # this session
  slipstream completion bash > /etc/bash_completion.d/slipstream
  slipstream completion zsh > "${fpath[1]}/_slipstream"
  slipstream completion fish > ~/.config/fish/completions/slipstream.fish
  slipstream completion powershell | Out-String | Invoke-Expression`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			root, out := c.Root(), c.OutOrStdout()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(out, true)
			case "zsh":
				err = root.GenZshCompletion(out)
			case "fish":
				err = root.GenFishCompletion(out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(out)
			}
			return fail(exitFailure, err, "")
		},
	}
}
