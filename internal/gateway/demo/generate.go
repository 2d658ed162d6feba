package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// generator fills the tables.
type generator struct {
	db   *sqlite3.Conn
	rand *rand.Rand
}

// insert calls row for each of n rows and inserts what it returns: int, int64,
// float64, string, bool or nil.
func (g *generator) insert(table string, columns, n int, row func(i int) []any) error {
	marks := strings.TrimSuffix(strings.Repeat("?,", columns), ",")
	stmt, _, err := g.db.Prepare("INSERT INTO " + sqlite3.QuoteIdentifier(table) + " VALUES (" + marks + ")")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i := range n {
		if err := bind(stmt, row(i)...); err != nil {
			return err
		}
		if err := stmt.Exec(); err != nil {
			return fmt.Errorf("row %d of %s: %w", i, table, err)
		}
	}
	return nil
}

// bind sets the parameters of a statement.
func bind(stmt *sqlite3.Stmt, values ...any) error {
	for i, v := range values {
		var err error
		switch v := v.(type) {
		case int:
			err = stmt.BindInt64(i+1, int64(v))
		case int64:
			err = stmt.BindInt64(i+1, v)
		case float64:
			err = stmt.BindFloat(i+1, v)
		case bool:
			err = stmt.BindBool(i+1, v)
		case string:
			err = stmt.BindText(i+1, v)
		case nil:
			err = stmt.BindNull(i + 1)
		default:
			err = fmt.Errorf("value of type %T", v)
		}
		if err != nil {
			return fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return nil
}

var (
	areas = []string{"Accounting", "Research", "Sales", "Operations", "Logistics", "Purchasing",
		"Customer Care", "Legal", "Quality", "Engineering", "Marketing", "Treasury"}
	cities = []string{"Amsterdam", "Berlin", "Boston", "Chicago", "Dallas", "Dublin", "Kraków", "Lyon",
		"Montréal", "New York", "Osaka", "São Paulo", "Seoul", "Sydney", "Tallinn", "Zürich"}
	firstNames = []string{"Ada", "Alan", "Barbara", "Claude", "Dennis", "Edsger", "Frances", "Grace", "Hedy",
		"Ivan", "Jean", "Ken", "Leslie", "Margaret", "Niklaus", "Radia", "Robin", "Sophie", "Tony", "Vera"}
	lastNames = []string{"Adams", "Blake", "Clark", "Ford", "Jones", "King", "Martin", "Miller", "Scott", "Smith",
		"Turner", "Ward", "Allen", "James", "Becker", "Costa", "Dubois", "Evans", "Fischer", "Garcia"}
	jobs = []string{"Analyst", "Clerk", "Engineer", "Manager", "Planner", "Salesman", "Technician", "Accountant"}

	products = []string{"Bearing", "Bracket", "Cable", "Filter", "Gasket", "Hinge", "Pump", "Relay", "Sensor", "Valve"}
	carriers = []string{"DHL", "FedEx", "UPS", "Maersk", "DB Schenker"}
	statuses = []string{"open", "paid", "packed", "shipped", "closed"}
)

var currencies = map[string]string{"amer": "USD", "apac": "JPY", "emea": "EUR", "latam": "BRL"}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// moment is a time of a past decade, in the format of SQLite's datetime.
func (g *generator) moment() string {
	return time.Unix(1_400_000_000+g.rand.Int64N(300_000_000), 0).UTC().Format(time.DateTime)
}

func (g *generator) depts() error {
	return g.insert("dept", 6, Depts, func(i int) []any {
		return []any{i + 1, fmt.Sprintf("%s %d", areas[i%len(areas)], i/len(areas)+1), pick(g.rand, cities),
			fmt.Sprintf("CC-%04d-%02d", i+1, g.rand.IntN(100)), 10_000 * (10 + g.rand.IntN(990)), g.moment()}
	})
}

func (g *generator) emps() error {
	return g.insert("emp", 9, Depts*EmpsPerDept, func(i int) []any {
		return newEmp(g.rand, firstEmp+i, i/EmpsPerDept+1)
	})
}

// newEmp returns the row of an employee.
func newEmp(r *rand.Rand, empno, deptno int) []any {
	first, last := pick(r, firstNames), pick(r, lastNames)
	return []any{empno, deptno, first + " " + last, pick(r, jobs), string(rune('A'+r.IntN(4))) + string(rune('1'+r.IntN(9))),
		strings.ToLower(first+"."+last) + fmt.Sprintf("%d@example.com", empno%100),
		fmt.Sprintf("%d-%02d-%02d", 1995+r.IntN(30), 1+r.IntN(12), 1+r.IntN(28)),
		100 * (280 + r.IntN(700)), r.IntN(3) == 0}
}

func (g *generator) orders() error {
	return g.insert("orders", 6, len(Regions)*OrdersPerArea, func(i int) []any {
		region := Regions[i/OrdersPerArea]
		return []any{region, i%OrdersPerArea + 1, pick(g.rand, lastNames) + " " + pick(g.rand, []string{"Ltd", "GmbH", "Inc", "SA"}),
			g.moment(), pick(g.rand, statuses), currencies[region]}
	})
}

// lines also inserts one shipment for most lines and two for some.
func (g *generator) lines() error {
	n := len(Regions) * OrdersPerArea * LinesPerOrder
	var shipped []int // the line of each shipment
	err := g.insert("order_line", 7, n, func(i int) []any {
		for range g.rand.IntN(5) / 2 {
			shipped = append(shipped, firstLine+i)
		}
		order := i / LinesPerOrder
		product := pick(g.rand, products)
		return []any{firstLine + i, Regions[order/OrdersPerArea], order%OrdersPerArea + 1,
			fmt.Sprintf("%s-%04d", strings.ToUpper(product[:3]), g.rand.IntN(10_000)), product,
			1 + g.rand.IntN(40), float64(99+g.rand.IntN(50_000)) / 100}
	})
	if err != nil {
		return err
	}
	return g.insert("shipment", 5, len(shipped), func(i int) []any {
		var at any
		if g.rand.IntN(4) > 0 {
			at = g.moment()
		}
		return []any{i + 1, shipped[i], pick(g.rand, carriers), fmt.Sprintf("%012d", g.rand.Int64N(1_000_000_000_000)), at}
	})
}
