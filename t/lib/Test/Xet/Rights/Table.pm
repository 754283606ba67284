package Test::Xet::Rights::Table;

# Copyright (C) the ngx_http_xet_module authors

# The table of expectations, t/rights/expect.def: its own first lines say what
# is in it.
#
#     my $table = Test::Xet::Rights::Table->new($file);
#
#     $table->routes('hub');       [ { form, methods, column, more } ]; of the
#                                  API with versions
#     $table->callers();           [ { name, ... } ], in their order
#     $table->things('look');      'SON'
#     $table->cell('hub', 'bob.read', 'look');    'mom'
#     $table->faults($routes, $hub);
#
# The last one compares it with what xet_tables prints, and says what is
# missing on either side and what is malformed, a line each.

use warnings;
use strict;

sub new {
	my ($class, $file) = @_;

	my $self = bless {
		file => $file, api => [], hub => [], callers => [],
		columns => {},
		matrices => {}, order => [], faults => []
	}, $class;

	open(my $in, '<', $file) or die "$file: $!\n";

	while (my $line = <$in>) {
		$line =~ s/#.*//;

		my ($word, @rest) = split(' ', $line) or next;

		$self->line($word, @rest)
			or push @{ $self->{faults} }, "$file:$.: malformed";
	}

	return $self;
}

sub line {
	my ($self, $word, @rest) = @_;

	my $parse = $self->can("line_$word");

	return $parse->($self, @rest) if $parse;
	return $self->cells($word, @rest);
}

sub line_column {
	my ($self, $name, $things, $as) = @_;

	return 0 unless defined $things && !exists $self->{columns}{$name};

	$self->{as}{$name} = $1 if ($as // '') =~ /^as=(\w+)$/;

	$self->{columns}{$name} = $things eq '-' ? '' : $things;

	return 1;
}

sub line_api {
	my ($self, $form, $versions, $methods, $column, @more) = @_;

	return 0 unless defined $column;

	push @{ $self->{api} }, {
		form => $form,
		versions => [ map { s/^-$//r } split(/,/, $versions) ],
		methods => [ split(/,/, $methods) ], column => $column,
		more => pairs(@more)
	};

	return 1;
}

sub line_hub {
	my ($self, $form, $methods, $column, @more) = @_;

	return 0 unless defined $column;

	push @{ $self->{hub} }, {
		form => $form, methods => [ split(/,/, $methods) ],
		column => $column, more => pairs(@more)
	};

	return 1;
}

sub line_caller {
	my ($self, $name, @more) = @_;

	return 0 unless defined $name && !grep { $_->{name} eq $name }
		@{ $self->{callers} };

	push @{ $self->{callers} }, { name => $name, %{ pairs(@more) } };

	return 1;
}

sub line_matrix {
	my ($self, $name, $of, $base) = @_;

	return 0 if !defined $name || exists $self->{matrices}{$name};
	return 0 if defined $of
		&& ($of ne 'of' || !$self->{matrices}{ $base // '' });

	$self->{matrices}{$name} = defined $base ? { map {
		$_ => { %{ $self->{matrices}{$base}{$_} } }
	} keys %{ $self->{matrices}{$base} } } : {};
	$self->{derived}{$name} = defined $base;
	push @{ $self->{order} }, $name;

	return 1;
}

sub line_cells {
	my ($self, @columns) = @_;

	$self->{head} = \@columns;

	return !grep { !exists $self->{columns}{$_} } @columns;
}

# Callers that have a name together.

sub line_group {
	my ($self, $name, @callers) = @_;
	my %is = map { $_->{name} => 1 } @{ $self->{callers} };

	return 0 if grep { !$is{$_} } @callers;

	push @{ $self->{groups}{$name // ''} }, @callers;

	return @callers > 0;
}

# A row of a matrix: a caller, a group of them, "all", or the first part of the
# names of some with a ".*"; of a matrix that is of another one, all who have a
# row there.

sub cells {
	my ($self, $who, @cells) = @_;

	my $matrix = $self->{order}[-1] // return 0;
	my @head = @{ $self->{head} || [] };
	my $like = $who eq 'all' ? qr// : $who =~ /^(.+\.)\*$/ ? qr/^\Q$1\E/
		: qr/^\Q$who\E$/;
	my $group = $self->{groups}{$who};
	my @names = $group ? @$group
		: grep { /$like/ } map { $_->{name} } @{ $self->{callers} };

	@names = grep { $self->{matrices}{$matrix}{$_} } @names
		if @names > 1 && $self->{derived}{$matrix};

	return 0 unless @names && @cells && @cells == @head;

	for my $i (0 .. $#head) {
		my $size = length($self->{columns}{$head[$i]}) || 1;

		return 0 unless $cells[$i] =~ /^[osmufcn]{$size}$/;

		$self->{matrices}{$matrix}{$_}{$head[$i]} = $cells[$i]
			for @names;
	}

	return 1;
}

sub pairs {
	return { map { /^([\w.]+)=(.*)$/ ? ($1 => $2) : ($_ => '') } @_ };
}

sub routes { return $_[0]->{$_[1]} }
sub callers { return $_[0]->{callers} }
sub things { return $_[0]->{columns}{$_[1]} }
sub matrices { return $_[0]->{order} }

# A column that has no cells of its own has those of the one that it is as.

sub cell {
	my ($self, $matrix, $who, $column) = @_;

	my $cells = $self->{matrices}{$matrix}{$who};

	return $cells->{$column} // $cells->{ $self->{as}{$column} // '' };
}

# Whether a caller has a row in a matrix.

sub comes { return exists $_[0]->{matrices}{$_[1]}{$_[2]} }

# --------------------------------------------------------------------------
# against the routes that there are

sub faults {
	my ($self, $routes, $hub) = @_;

	my @faults = @{ $self->{faults} };
	my %is = ((map { api_keys($_) } @$routes), map { hub_keys($_) } @$hub);
	my %said = ((map { api_keys($_) } @{ $self->{api} }),
		map { hub_keys($_) } @{ $self->{hub} });

	push @faults, map { "no expectation of the route \"$_\"" }
		grep { !$said{$_} } sort keys %is;
	push @faults, map { "no route \"$_\", which has an expectation" }
		grep { !$is{$_} } sort keys %said;

	for my $route (@{ $self->{api} }, @{ $self->{hub} }) {
		push @faults, 'no column "' . $route->{column} . '" for "'
			. "$route->{form}\""
			unless $route->{column} eq 'url'
			|| exists $self->{columns}{ $route->{column} };
	}

	return (@faults, $self->empty_cells());
}

sub api_keys {
	my ($route) = @_;

	my @keys;

	for my $version (@{ $route->{versions} }) {
		push @keys, map { ("api $_ $version/$route->{form}", 1) }
			@{ $route->{methods} };
	}

	return @keys;
}

sub hub_keys {
	my ($route) = @_;

	return map { ("hub $_ $route->{form}", 1) } @{ $route->{methods} };
}

# A caller who is in a matrix has a cell in each of its columns.

sub empty_cells {
	my ($self) = @_;

	my @faults;

	for my $name (@{ $self->{order} }) {
		my $matrix = $self->{matrices}{$name};
		my %columns = map { map { $_ => 1 } keys %$_ } values %$matrix;

		delete @columns{ keys %{ $self->{as} || {} } };

		for my $who (sort keys %$matrix) {
			push @faults, map { "$name: nothing for $who, $_" }
				grep { !exists $matrix->{$who}{$_} }
				sort keys %columns;
		}
	}

	return @faults;
}

1;
