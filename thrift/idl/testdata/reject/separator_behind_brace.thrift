struct A {};
