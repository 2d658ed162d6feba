package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

func (p program) callThriftList() *cobra.Command {
	var f idlFlags
	c := &cobra.Command{
		Use:   "list [SERVICE]",
		Short: "List the services of an IDL, or the functions of one",
		Long: `List prints the names of the services that the file declares, or of the functions of SERVICE,
inherited ones last, in the form that slipstream call thrift expects.`,
		Example: `  slipstream call thrift list -f shop.thrift
  slipstream call thrift list -f shop.thrift Shop`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := f.load()
			if err != nil {
				return fail(exitUsage, err, "")
			}
			names, err := listed(file, args)
			if err != nil {
				return fail(exitUsage, err, "")
			}
			_, err = io.WriteString(c.OutOrStdout(), strings.Join(append(names, ""), "\n"))
			return fail(exitFailure, err, "")
		},
	}
	f.register(c)
	_ = c.MarkFlagRequired("idl") // fails only if there is no such flag
	return c
}

// listed returns the services of a file, or the functions of the one that is named.
func listed(file *idl.File, service []string) (names []string, err error) {
	if len(service) == 0 {
		for _, d := range file.Decls {
			if s, ok := d.(*idl.Service); ok {
				names = append(names, s.Name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s declares no service", file.Path)
		}
		return names, nil
	}
	s := file.Service(service[0])
	if s == nil {
		return nil, fmt.Errorf("%s declares no service %s", file.Path, service[0])
	}
	for _, f := range genericrpc.Functions(s) {
		names = append(names, s.Name+"."+f.Name)
	}
	return names, nil
}

func (p program) callThriftDescribe() *cobra.Command {
	var f idlFlags
	c := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show the declaration of a name in an IDL",
		Long: `Describe prints the declaration of a function (SERVICE.FUNCTION), a service, a type or a
constant, with its comments, in the language of Thrift. Names of an included file are
prefixed with the name of that file: shared.User.`,
		Example: `  slipstream call thrift describe -f shop.thrift Shop.find
  slipstream call thrift describe -f shop.thrift Order
  slipstream call thrift describe -f shop.thrift -I idl shared.User`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := f.load()
			if err != nil {
				return fail(exitUsage, err, "")
			}
			text, err := described(file, args[0])
			if err != nil {
				return fail(exitUsage, err, "")
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return fail(exitFailure, err, "")
		},
	}
	f.register(c)
	_ = c.MarkFlagRequired("idl") // fails only if there is no such flag
	return c
}

// described returns the declaration of a name as IDL.
func described(file *idl.File, name string) (string, error) {
	if d := declared(file, name); d != nil {
		return idl.Text(d), nil
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", fmt.Errorf("%s declares no %s", file.Path, name)
	}
	for _, include := range file.Includes {
		if include.File.Name != name[:dot] {
			continue
		}
		if d := declared(include.File, name[dot+1:]); d != nil {
			return idl.Text(d), nil
		}
	}
	_, f, err := genericrpc.Lookup(file, name)
	if err != nil {
		return "", err
	}
	return f.Text(), nil
}

// declared returns the declaration of a name without a prefix, or nil.
func declared(file *idl.File, name string) idl.Decl {
	if s := file.Service(name); s != nil {
		return s
	}
	if c := file.Const(name); c != nil {
		return c
	}
	return file.Type(name)
}
