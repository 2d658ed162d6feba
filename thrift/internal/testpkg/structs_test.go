package testpkg

import (
	"fmt"
	"reflect"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/b"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/constants"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/docs"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/ids"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/names"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// These tests are also run for packages that are generated with other options: see
// TestGeneratedModule of thrift/gen. Therefore they do not use methods that an option adds.

// structs holds constructors of all structs of the generated packages, by name.
var structs = func() map[string]func() thrift.CompactStruct {
	all := make(map[string]func() thrift.CompactStruct)
	for _, list := range [][]func() (thrift.CompactStruct, bool){
		shop.StructsOfShop, shop.StructsOfTypes, names.StructsOfNames, shared.StructsOfShared, b.StructsOfB,
		constants.StructsOfConstants, ids.StructsOfIDs, docs.StructsOfDocs,
	} {
		for _, make := range list {
			s, isUnion := make()
			t := reflect.TypeOf(s).Elem()
			unions[t] = isUnion
			all[fmt.Sprint(t)] = func() thrift.CompactStruct {
				s, _ := make()
				return s
			}
		}
	}
	return all
}()

// unions holds the types that are unions.
var unions = make(map[reflect.Type]bool)
