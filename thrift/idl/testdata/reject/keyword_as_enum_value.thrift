enum E { required }
