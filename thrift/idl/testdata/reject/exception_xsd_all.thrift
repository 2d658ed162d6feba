exception A xsd_all {}
