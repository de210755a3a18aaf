// Lints of the dashboard's scripts. No HTML is made from strings, and nothing is left in the console.

const path = require('node:path');
const modules = path.join(__dirname, '../../target/ui-lints/node_modules');
const from = (name) => require(path.join(modules, name));

const js = from('@eslint/js');
const globals = from('globals');
const unsanitized = from('eslint-plugin-no-unsanitized');

module.exports = [
  { ignores: ['**/vendor/**'] },
  js.configs.recommended,
  unsanitized.configs.recommended,
  {
    files: ['**/*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      // Foreign text is searched for controls and for halves of characters.
      'no-control-regex': 'off',
      'no-misleading-character-class': 'off',
      eqeqeq: 'error',
      'no-console': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'No HTML is made from strings.' },
        { property: 'outerHTML', message: 'No HTML is made from strings.' },
        { property: 'insertAdjacentHTML', message: 'No HTML is made from strings.' },
        { object: 'document', property: 'write', message: 'No HTML is made from strings.' },
        { property: 'dangerouslySetInnerHTML', message: 'No HTML is made from strings.' },
      ],
    },
  },
];
